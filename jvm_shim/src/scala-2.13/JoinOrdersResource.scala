package org.apache.spark.status.api.v1.pyjoinopt

import jakarta.ws.rs.{GET, Path, PathParam, Produces}
import jakarta.ws.rs.core.MediaType

import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.sql.pyjoinopt.JoinOrdersApi
import org.apache.spark.status.api.v1.{ApiRequestContext, BaseAppResource, NotFoundException}

/**
 * The REST API of a History Server: `/api/v1/applications/[id]/joinorders`, and `/joinorders/[number]` below it.
 *
 * Spark's servlet looks for resources in this package and those below it. Law: the same file for both versions of Scala,
 * except for the names of the servlet API's packages.
 */
@Path("/v1")
private[v1] class JoinOrdersRootResource extends ApiRequestContext {
  @Path("applications/{appId}/joinorders")
  def joinOrders(@PathParam("appId") appId: String): Class[JoinOrdersResource] = classOf[JoinOrdersResource]

  @Path("applications/{appId}/{attemptId}/joinorders")
  def joinOrders(
      @PathParam("appId") appId: String,
      @PathParam("attemptId") attemptId: String): Class[JoinOrdersResource] = classOf[JoinOrdersResource]
}

@Produces(Array(MediaType.APPLICATION_JSON))
private[v1] class JoinOrdersResource extends BaseAppResource {
  @GET
  def all(): JsonNode = withUI(ui => JoinOrdersApi.all(ui))

  @GET
  @Path("{number: \\d+}")
  def one(@PathParam("number") number: Long): JsonNode = withUI { ui =>
    JoinOrdersApi.one(ui, number).getOrElse(throw new NotFoundException(s"unknown query: $number"))
  }
}
