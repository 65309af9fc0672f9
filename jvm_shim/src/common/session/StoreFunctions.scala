package org.apache.spark.sql.pyjoinopt

import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.sql.{Row, SparkSession}
import org.apache.spark.sql.catalyst.FunctionIdentifier
import org.apache.spark.sql.catalyst.expressions.{AttributeReference, Expression, ExpressionInfo}
import org.apache.spark.sql.catalyst.plans.logical.{LocalRelation, LogicalPlan}
import org.apache.spark.sql.catalyst.util.DateTimeUtils
import org.apache.spark.sql.types._

/**
 * The SQL functions `joinopt_queries()` and `joinopt_baselines()`: what the store has, as a worker reads it.
 *
 * Law: the store has names of tables of all who use it, so the functions answer only where the application allows it
 * (`spark.pyjoinopt.storeFunctions`), or where the driver's own Python has enabled the session and has set the key for
 * it: code there can read the file itself.
 */
private[pyjoinopt] object StoreFunctions {
  private type Builder = (FunctionIdentifier, ExpressionInfo, Seq[Expression] => LogicalPlan)

  private val Allowed = "spark.pyjoinopt.storeFunctions"
  private val Store = "spark.pyjoinopt.store"

  /** How long a call waits for a worker that is running (milliseconds); one that starts has its own time. */
  private val Patience = 10000L

  /** The columns of `pyjoinopt.queries()`; a test compares them. */
  private val ofQueries = Seq(
    "query" -> StringType,
    "tables" -> StringType,
    "plan" -> StringType,
    "changes" -> StringType,
    "runs" -> LongType,
    "seconds" -> DoubleType,
    "fastest" -> DoubleType,
    "slowest" -> DoubleType,
    "planning" -> DoubleType,
    "task_seconds" -> DoubleType,
    "skew" -> DoubleType,
    "rows" -> DoubleType,
    "spilled" -> DoubleType,
    "failed" -> LongType,
    "first" -> TimestampType,
    "last" -> TimestampType,
    "state" -> StringType
  )

  private val ofBaselines = Seq(
    "name" -> StringType,
    "orders" -> StringType,
    "hints" -> StringType,
    "options" -> StringType,
    "spark" -> StringType,
    "pinned" -> TimestampType)

  val all: Seq[Builder] = Seq(
    function("queries", "What recurring queries did: one row a query and plan.", ofQueries),
    function("baselines", "The plans that are pinned.", ofBaselines))

  private def function(operation: String, usage: String, columns: Seq[(String, DataType)]): Builder = {
    val name = s"joinopt_$operation"
    (
      FunctionIdentifier(name),
      SessionReports.info(name, usage),
      (arguments: Seq[Expression]) => {
        if (arguments.nonEmpty) Support.fail(s"$name() takes no arguments.")
        val output = columns.map { case (column, dataType) => AttributeReference(column, dataType)() }
        val rows = SparkSession.getActiveSession.fold(Seq.empty[Row]) { session =>
          read(Compat.ours(session), name, operation).map(row =>
            Row.fromSeq(columns.map {
              case (column, dataType) => value(row.path(column), dataType)
            }))
        }
        LocalRelation.fromExternalRows(output, rows)
      })
  }

  private def read(session: Compat.Session, name: String, operation: String): Seq[JsonNode] = {
    if (!isAllowed(session)) {
      Support.fail(
        s"$name() shows names of tables, orders and times of all queries that use the store, so the application must " +
          s"allow it: start it with --conf $Allowed=true.")
    }
    val store = ApplicationSettings.effective(session).get(Store)
      .fold("")(path => s""","store":${Support.mapper.writeValueAsString(path)}""")
    val settings = WorkerSettings.of(session)
    val patient = settings.copy(timeout = settings.startTimeout + Patience)
    val answer = Workers.withWorker(session, patient, new PlanningTimeBudget, _ => ()) { (worker, deadline) =>
      worker.request(s"""{"op":"$operation"$store}""", deadline)(_ => Support.fail("no question is expected"))._1
    }
    val problem = answer.fold("no worker could read it; the driver's log has the reason")(_.path("problem").asText(""))
    if (answer.forall(_.path("problem").isTextual)) Support.fail(s"$name() cannot read the store: $problem.")
    answer.toSeq.flatMap(one => ExpressionBuilder.elements(one.get("rows")))
  }

  private def isAllowed(session: Compat.Session): Boolean =
    ApplicationSettings.text(session, Allowed).exists(_.equalsIgnoreCase("true"))

  private def value(node: JsonNode, dataType: DataType): Any =
    if (node.isMissingNode || node.isNull) null
    else dataType match {
      case LongType => node.asLong
      case DoubleType => node.asDouble
      case TimestampType => DateTimeUtils.toJavaTimestamp((node.asDouble * 1e6).toLong)
      case _ => node.asText
    }
}
