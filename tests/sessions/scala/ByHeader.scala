package users

import SERVLET.servlet.{Filter, FilterChain, FilterConfig, ServletRequest, ServletResponse}
import SERVLET.servlet.http.{HttpServletRequest, HttpServletRequestWrapper}

/** Replaces a cluster's authentication: the header `user` names the user. */
class ByHeader extends Filter {
  override def init(config: FilterConfig): Unit = ()
  override def destroy(): Unit = ()

  override def doFilter(request: ServletRequest, response: ServletResponse, chain: FilterChain): Unit = {
    val http = request.asInstanceOf[HttpServletRequest]
    chain.doFilter(
      new HttpServletRequestWrapper(http) { override def getRemoteUser: String = http.getHeader("user") },
      response)
  }
}
