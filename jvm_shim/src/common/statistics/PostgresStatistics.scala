package org.apache.spark.sql.pyjoinopt

import java.sql.{Connection, ResultSet}
import java.util.Locale
import java.util.concurrent.{Callable, ConcurrentHashMap, Future, TimeoutException, TimeUnit}

import scala.collection.mutable
import scala.util.control.NonFatal

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.datasources.LogicalRelation
import org.apache.spark.sql.execution.datasources.jdbc.{JDBCOptions, JDBCPartition, JDBCRelation}
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTable
import org.apache.spark.sql.jdbc.JdbcDialects

/**
 * The statistics of a PostgreSQL table that is read over JDBC: those of the server's own ANALYZE, from `pg_class` and
 * `pg_stats`.
 *
 * Rows are counted as PostgreSQL's planner counts them (`estimate_rel_size` in `plancat.c`): the rows of a page when
 * the table was analysed, times its pages now. `pg_stats` has only the columns that the user may read.
 *
 * Laws: two reads of the server's catalogue, over a connection like that of Spark's scan, with the same options; no
 * table is read. Counts are estimates, never exact. A relation that need not read its whole table (a query, predicates,
 * a statement that changes the session) has no statistics. What comes too late counts for the next query.
 */
private[pyjoinopt] object PostgresStatistics {
  val Source = "pg_stats"

  /** A column as `pg_stats` has it; a negative number of distinct values is a share of the rows. */
  final case class Column(
      nulls: Double,
      width: Double,
      distinct: Double,
      common: Array[String],
      shares: Array[Double],
      bounds: Array[String])

  final case class Table(rows: Double, columns: Map[String, Column])

  private final case class Kept(table: Future[Option[Table]], since: Long)

  private val kept = new ConcurrentHashMap[Map[String, String], Kept]
  private val KeptFor = TimeUnit.MINUTES.toNanos(10)
  private val MostKept = 1000
  private val TimeoutSeconds = 10
  private val Name = """(?:\w+|"[^"]+")(?:\.(?:\w+|"[^"]+"))?""".r

  /** The options of a relation that reads a whole table of a PostgreSQL server. */
  def optionsOf(node: LogicalPlan): Option[JDBCOptions] = {
    val found = node match {
      case relation: LogicalRelation => relation.relation match {
          case jdbc: JDBCRelation if isWhole(jdbc) => Some(jdbc.jdbcOptions)
          case _ => None
        }
      case v2: DataSourceV2Relation => v2.table match {
          case table: JDBCTable => Some(table.jdbcOptions)
          case _ => None
        }
      case _ => None
    }
    found.filter(options =>
      options.url.toLowerCase(Locale.ROOT).startsWith("jdbc:postgresql:") && options.sessionInitStatement.isEmpty &&
        !options.parameters.contains(JDBCOptions.JDBC_QUERY_STRING) && Name.pattern.matcher(
          options.tableOrQuery).matches)
  }

  /** Whether the partitions of a scan cover all rows; those of a list of predicates need not. */
  private def isWhole(relation: JDBCRelation): Boolean =
    relation.jdbcOptions.partitionColumn.isDefined || relation.parts.forall {
      case part: JDBCPartition => part.whereClause == null
      case _ => false
    }

  /** Start to read. The returned function waits for the end, for so many milliseconds, and returns the statistics. */
  def begin(relation: LogicalPlan, options: JDBCOptions, milliseconds: Long): () => NodeFacts = {
    val until = System.nanoTime + TimeUnit.MILLISECONDS.toNanos(milliseconds)
    val table = reading(options)
    () =>
      try table.get(math.max(0, until - System.nanoTime), TimeUnit.NANOSECONDS) match {
          case Some(known) => facts(relation, known)
          case None => unknown("the server has not analysed this table")
        }
      catch {
        case _: TimeoutException => unknown("the server's statistics were late")
        case NonFatal(_) =>
          kept.remove(options.parameters.originalMap)
          unknown("the server's statistics cannot be read")
      }
  }

  private def unknown(reason: String): NodeFacts = NodeFacts(None, None, "size", note = Some(reason))

  /** What is being read, or was read within the last minutes. */
  private def reading(options: JDBCOptions): Future[Option[Table]] = {
    val now = System.nanoTime
    if (kept.size > MostKept) kept.clear()
    kept.compute(
      options.parameters.originalMap,
      (_, before) =>
        if (before != null && now - before.since < KeptFor) before
        else {
          val read: Callable[Option[Table]] = () => connected(options)
          Kept(FileStatistics.pool.submit(read), now)
        }
    ).table
  }

  private def connected(options: JDBCOptions): Option[Table] = {
    val connection = JdbcDialects.get(options.url).createConnectionFactory(options)(-1)
    try {
      connection.setReadOnly(true)
      read(connection, options.tableOrQuery)
    } finally connection.close()
  }

  private def read(connection: Connection, table: String): Option[Table] = {
    val found = rows(
      connection,
      """SELECT n.nspname, c.relname, c.reltuples::float8, c.relpages::float8,
        |  CASE WHEN c.relkind IN ('r', 'm') THEN pg_relation_size(c.oid)::float8 / current_setting('block_size')::float8
        |  END
        |FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
        |WHERE c.oid = to_regclass(?)""".stripMargin,
      table
    ) { row =>
      val (tuples, pages) = (row.getDouble(3), row.getDouble(4))
      val present = Option(row.getObject(5)).map(_.toString.toDouble)
      val isAnalysed = tuples > 0 || (tuples == 0 && pages > 0)
      val count = if (pages > 0) present.fold(tuples)(tuples / pages * _) else tuples
      (row.getString(1), row.getString(2), if (isAnalysed) Some(count) else None)
    }
    for ((schema, name, counted) <- found.headOption; count <- counted)
      yield Table(count, columns(connection, schema, name))
  }

  /** With the rows of tables that inherit from it, which a scan reads too, where the server has both. */
  private def columns(connection: Connection, schema: String, name: String): Map[String, Column] =
    rows(
      connection,
      """SELECT attname, null_frac, avg_width, n_distinct, most_common_vals::text::text[], most_common_freqs::float8[],
        |  histogram_bounds::text::text[]
        |FROM pg_catalog.pg_stats WHERE schemaname = ? AND tablename = ? ORDER BY inherited""".stripMargin,
      schema,
      name
    ) { row =>
      val shares = array(row, 6).map(_.toString.toDouble)
      row.getString(1) -> Column(
        row.getDouble(2),
        row.getDouble(3),
        row.getDouble(4),
        array(row, 5).map(_.toString),
        shares,
        array(row, 7).map(_.toString))
    }.toMap

  private def array(row: ResultSet, column: Int): Array[AnyRef] =
    Option(row.getArray(column)).fold(Array.empty[AnyRef])(_.getArray.asInstanceOf[Array[AnyRef]])

  private def rows[T](connection: Connection, query: String, parameters: String*)(read: ResultSet => T): Seq[T] = {
    val statement = connection.prepareStatement(query)
    try {
      statement.setQueryTimeout(TimeoutSeconds)
      parameters.zipWithIndex.foreach { case (value, i) => statement.setString(i + 1, value) }
      val result = statement.executeQuery()
      val found = mutable.ArrayBuffer[T]()
      while (result.next()) found += read(result)
      found.toList
    } finally statement.close()
  }

  private def facts(relation: LogicalPlan, table: Table): NodeFacts = {
    val columns = relation.output.flatMap { attribute =>
      table.columns.get(attribute.name).map(column =>
        attribute -> PostgresColumn.facts(column, attribute.dataType, table.rows))
    }
    NodeFacts(Some(table.rows), None, Source, columns = columns)
  }
}
