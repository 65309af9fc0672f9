package org.apache.spark.sql.pyjoinopt

import org.apache.spark.sql.execution.datasources.jdbc.{JDBCOptions, JDBCRelation}

/**
 * The name of a JDBC relation: its table or query, and its database.
 *
 * Law: no user, no password and no other credential. An address is parsed, and only parts that are known to name a
 * server, a database or a schema are kept, since every driver has its own places for secrets.
 */
private[pyjoinopt] object JdbcName {
  private val MaxQueryLength = 200
  private val PublicParameters = Set("database", "databasename", "dbname", "db", "schema", "currentschema", "warehouse",
    "catalog",
    "servicename", "service_name", "sid", "host", "port", "instancename")
  private val Scheme =
    """(?i)((?:jdbc:)?[a-z0-9+.-]+:(?:(?:thin|oci8?|mysql|postgresql|mem|file|sqlserver|loadbalance|replication):)*)(.*)""".r
  private val Pair = """([A-Za-z_]+)=([^=(),;?&]*)""".r

  def of(relation: JDBCRelation): String = {
    val options = relation.jdbcOptions.parameters
    val read = options.get(JDBCOptions.JDBC_QUERY_STRING).map(query => s"($query)")
      .orElse(options.get(JDBCOptions.JDBC_TABLE_NAME)).getOrElse("?")
    s"${short(read.trim.replaceAll("\\s+", " "))} at ${address(options.getOrElse(JDBCOptions.JDBC_URL, ""))}"
  }

  /** A hash distinguishes long queries that begin alike. */
  private def short(text: String): String =
    if (text.length <= MaxQueryLength) text else f"${text.take(MaxQueryLength)}... #${text.hashCode}%08x"

  /** An address without secrets. */
  def address(url: String): String = url.replaceAll("\\s", "") match {
    case Scheme(scheme, rest) =>
      val end = rest.indexWhere(c => c == '?' || c == ';')
      val (head, tail) = if (end < 0) (rest, "") else (rest.take(end), rest.drop(end))
      val parameters =
        Pair.findAllMatchIn(tail).filter(pair => PublicParameters(pair.group(1).toLowerCase)).map(_.matched).toList
      val where = (if (isCut(head, tail)) "" else server(head)).stripPrefix("//").stripSuffix("/")
      (scheme.stripPrefix("jdbc:") + (if (where.isEmpty) "" else s"//$where") +
        (if (parameters.isEmpty) "" else parameters.mkString(";", ";", ""))).stripSuffix(":")
    case _ => "?"
  }

  /** Whether a secret may continue after a separator that it contains: `//user:pass?word@host`. */
  private def isCut(head: String, tail: String): Boolean =
    tail.contains('@') && !head.contains('@') &&
      (!tail.takeWhile(_ != '@').contains('=') || !head.matches("(?://)?[^/:@]+(?::\\d+)?(?:/.*)?"))

  private def server(head: String): String = {
    val open = head.drop(head.lastIndexOf('@') + 1)
    if (open.contains('(')) {
      val pairs = Pair.findAllMatchIn(open).filter(pair => PublicParameters(pair.group(1).toLowerCase)).map(_.group(2))
      val path = open.drop(open.lastIndexOf(')') + 1)
      pairs.mkString(":") + (if (path.contains('=')) "" else path)
    } else {
      // Some drivers have their parameters in the path, between commas.
      val at = open.indexOf('=')
      if (at < 0) open
      else {
        val start = math.max(open.lastIndexOf('/', at), open.lastIndexOf(',', at)) + 1
        val kept = Pair.findAllMatchIn(open.drop(start)).filter(pair =>
          PublicParameters(pair.group(1).toLowerCase)).map(_.matched)
        open.take(start) + kept.mkString(",")
      }
    }
  }
}
