package org.apache.spark.sql.pyjoinopt

import java.util.{ArrayDeque, WeakHashMap}

import scala.collection.mutable

import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.sql.{Row, SparkSession}
import org.apache.spark.sql.catalyst.FunctionIdentifier
import org.apache.spark.sql.catalyst.expressions.{AttributeReference, Expression, ExpressionInfo, Literal}
import org.apache.spark.sql.catalyst.plans.logical.{LocalRelation, LogicalPlan}
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/**
 * The reports of the last plans of each session, and the SQL functions `SELECT * FROM joinopt_report()` and
 * `SELECT joinopt_version()`.
 *
 * Laws: only the last few are kept, and they are dropped with the session. A session can read its own reports only.
 * They are numbered by session, so that the numbers do not reveal how many queries other sessions run.
 */
private[pyjoinopt] object SessionReports {
  private val MaxReports = 100
  private val sessions = new WeakHashMap[Compat.Session, Plans]

  private final case class Planned(number: Long, at: Long, report: DeferredReport, marks: List[String])
  private final case class Report(number: Long, at: Long, report: JsonNode, marks: List[String])

  private final class Plans {
    val kept = new ArrayDeque[Planned]
    var last = 0L
  }

  /** Add a report. Reports with marks are kept apart from others, so that these do not displace them. */
  def add(session: Compat.Session, report: DeferredReport, marks: List[String]): Unit = sessions.synchronized {
    val plans = sessions.computeIfAbsent(session, _ => new Plans)
    plans.last += 1
    plans.kept.addLast(Planned(plans.last, System.currentTimeMillis, report, marks))
    trim(plans.kept, _.marks.isEmpty)
    trim(plans.kept, _.marks.nonEmpty)
  }

  private def trim(reports: ArrayDeque[Planned], kind: Planned => Boolean): Unit = {
    var surplus = -MaxReports
    reports.forEach(report => if (kind(report)) surplus += 1)
    val all = reports.iterator
    while (surplus > 0) if (kind(all.next())) {
      all.remove()
      surplus -= 1
    }
  }

  /** The number of the last report of a session, 0 if it has none. */
  def last(session: Compat.Session): Long = sessions.synchronized(Option(sessions.get(session)).fold(0L)(_.last))

  /** The reports of a session whose numbers are greater, as a JSON array, the oldest first. */
  def json(session: Compat.Session, after: Long = 0): String =
    of(session, after).map(_.report.toString).mkString("[", ",", "]")

  private def of(session: Compat.Session, after: Long = 0): Seq[Report] = {
    val planned = sessions.synchronized {
      val found = new mutable.ArrayBuffer[Planned]
      Option(sessions.get(session)).foreach(_.kept.forEach(plan => if (plan.number > after) found += plan))
      found.toList
    }
    for (Planned(number, at, deferred, marks) <- planned; report <- deferred.get)
      yield Report(number, at, report, marks)
  }

  private val columns = Seq(
    "number" -> LongType,
    "at" -> TimestampType,
    "changed" -> BooleanType,
    "relations" -> IntegerType,
    "order_before" -> StringType,
    "order_after" -> StringType,
    "cost_before" -> DoubleType,
    "cost_after" -> DoubleType,
    "strategy" -> StringType,
    "seconds" -> DoubleType,
    "notes" -> StringType,
    "report" -> StringType
  )

  /** One row for each join group of the last plans; one row for a plan without a group. */
  private def rows(reports: Seq[Report]): Seq[Row] = reports.flatMap { case Report(number, at, report, _) =>
    def texts(list: String, parts: String*): List[String] = ExpressionBuilder.elements(report.get(list)).map { one =>
      if (one.isTextual) one.asText else parts.map(one.path(_).asText).mkString(": ")
    }
    val notes = texts("eliminated_outer_joins") ++ texts("hints", "strategy", "reason") ++
      texts("refusals", "where", "reason") ++ texts("notes") ++ Option(report.get("error")).filterNot(_.isNull).map(
        _.asText)
    val (when, note) = (new java.sql.Timestamp(at), notes.mkString("; "))
    val (text, changed) = (report.toString, report.path("changed").asBoolean)
    val seconds = report.path("seconds").asDouble
    def row(group: JsonNode): Row = Row(
      number,
      when,
      changed && group.path("changed").asBoolean,
      group.path("relations").size,
      group.path("order_before").asText,
      group.path("order_after").asText,
      group.path("cost_before").asDouble,
      group.path("cost_after").asDouble,
      group.path("strategy").asText,
      seconds,
      note,
      text
    )
    val groups = ExpressionBuilder.elements(report.get("groups"))
    if (groups.nonEmpty) groups.map(row)
    else Seq(Row(number, when, changed, 0, null, null, null, null, null, seconds, note, text))
  }

  def info(name: String, usage: String): ExpressionInfo =
    new ExpressionInfo(
      classOf[PyJoinOptExtensions].getName,
      null,
      name,
      s"_FUNC_() - $usage",
      "",
      "",
      "",
      "",
      "",
      "",
      "")

  /**
   * `joinopt_report()`: the reports of this session's last queries. `joinopt_report('x')`: those of the queries with
   * the hint `OPTIMIZE_JOINS('mark=x')`.
   */
  val function: (FunctionIdentifier, ExpressionInfo, Seq[Expression] => LogicalPlan) = (
    FunctionIdentifier("joinopt_report"),
    info("joinopt_report", "What was done to the joins of this session's last queries."),
    (arguments: Seq[Expression]) => {
      val mark = arguments match {
        case Seq() => None
        case Seq(Literal(text: UTF8String, _)) => Some(text.toString)
        case _ => Support.fail("joinopt_report() takes no arguments, or the mark of a hint as a string.")
      }
      val output = columns.map { case (name, dataType) => AttributeReference(name, dataType)() }
      val reports = SparkSession.getActiveSession.fold(Seq.empty[Report])(session => of(Compat.ours(session)))
      LocalRelation.fromExternalRows(output, rows(mark.fold(reports)(m => reports.filter(_.marks.contains(m)))))
    })

  /** `joinopt_version()`: the version of the extension, by which a client detects it. */
  val version: (FunctionIdentifier, ExpressionInfo, Seq[Expression] => Expression) = (
    FunctionIdentifier("joinopt_version"),
    info("joinopt_version", "The version of the protocol that pyjoinopt speaks here."),
    (_: Seq[Expression]) => Literal(PyJoinOptBridge.version()))
}
