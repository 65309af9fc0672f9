package org.apache.spark.sql.pyjoinopt

import java.util.concurrent.atomic.AtomicLong

import scala.util.control.NonFatal

import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.SparkContext

/**
 * The analyses that are running. Each has a thread of its own, so that Python can poll its progress and cancel it.
 *
 * Law: a cancelled analysis leaves no job behind. Memory is bounded: beyond the limit the oldest result is dropped.
 */
private[pyjoinopt] object RunningAnalyses {
  private val Limit = 64
  private val open = new OpenNumbers[Running](Limit)
  private val last = new AtomicLong

  private final class Running(context: SparkContext, number: Long, description: String, work: => String) {
    private val group = s"pyjoinopt-analyze-$number"
    @volatile private var cancelled = false
    @volatile var result: Option[Either[Throwable, String]] = None

    private val thread = new Thread(s"pyjoinopt-analyze-$number") {
      override def run(): Unit = {
        context.setJobGroup(group, description, interruptOnCancel = true)
        result = Some(
          try if (cancelled) throw new InterruptedException("cancelled") else Right(work)
          catch {
            case NonFatal(error) => Left(error)
            case error @ (_: LinkageError | _: StackOverflowError | _: InterruptedException) => Left(error)
          })
      }
    }
    thread.setDaemon(true)
    thread.start()

    def cancel(): Unit = {
      cancelled = true
      context.cancelJobGroup(group)
      thread.interrupt()
    }

    /** The number of completed tasks, and of tasks known so far. */
    def progress: (Int, Int) = {
      val tracker = context.statusTracker
      val stages =
        tracker.getJobIdsForGroup(group).toSeq.flatMap(tracker.getJobInfo(_)).flatMap(_.stageIds).distinct
          .flatMap(tracker.getStageInfo(_))
      (stages.map(_.numCompletedTasks).sum, stages.map(_.numTasks).sum)
    }
  }

  def start(handle: Handle, request: JsonNode): Long = {
    val number = last.incrementAndGet()
    val description = request.path("description").asText("pyjoinopt.analyze")
    val analysis = new RelationAnalysis(handle, request)
    def work = handle.session.withActive(analysis.run())
    open.put(new Running(handle.session.sparkContext, number, description, work))
  }

  def cancel(number: Long): Unit = open.get(number).foreach(_.cancel())

  def status(number: Long): String = {
    val running = open.get(number).getOrElse(Support.fail(s"Analysis $number is not under way."))
    Support.json { out =>
      out.writeStartObject()
      val (done, tasks) = Support.attempt((0, 0))(running.progress)
      out.writeNumberField("completed", done)
      out.writeNumberField("tasks", tasks)
      running.result.foreach { result =>
        open.remove(number)
        result match {
          case Right(found) =>
            out.writeFieldName("result")
            out.writeRawValue(found)
          case Left(error) => out.writeStringField("error", Support.cut(RunningAnalyses.reason(error), 500))
        }
      }
      out.writeEndObject()
    }
  }

  private def reason(error: Throwable): String =
    Iterator.iterate(error)(_.getCause).takeWhile(_ != null).take(10).toList.last match {
      case root if root.getMessage == null => Support.className(root)
      case root => root.getMessage.split("\n").head
    }
}
