package org.apache.spark.sql.pyjoinopt

/** What a worker is doing. Which event leads from which state to which is decided by `WorkerState.after` alone. */
private[pyjoinopt] sealed trait WorkerState {

  /** How many requests it has had; the number of the last one is its id. */
  def requests: Long
  def takesRequests: Boolean = false
  def hasGreeted: Boolean = true
}

private[pyjoinopt] object WorkerState {

  /** The process is loading; its greeting has not been read. */
  case object Starting extends WorkerState {
    override def requests: Long = 0
    override def hasGreeted: Boolean = false
  }

  /** It waits for a request, and nothing of it is unread. */
  final case class Idle(requests: Long) extends WorkerState {
    override def takesRequests: Boolean = true
  }

  /** It has a request, and its answer has not been read. */
  final case class Answering(requests: Long) extends WorkerState

  /** Its answer has been read, the report that follows has not. */
  final case class Owing(report: DeferredReport) extends WorkerState {
    override def requests: Long = report.id
    override def takesRequests: Boolean = true
  }

  /** It was killed; `late`: because a deadline had passed. */
  final case class Dead(late: Boolean, requests: Long, override val hasGreeted: Boolean) extends WorkerState

  sealed trait Event
  case object Greeted extends Event
  case object Requested extends Event
  final case class Answered(report: DeferredReport) extends Event
  case object ReportRead extends Event
  final case class Killed(late: Boolean) extends Event

  def after(state: WorkerState, event: Event): WorkerState = (state, event) match {
    case (dead: Dead, Killed(late)) => dead.copy(late = dead.late || late)
    case (dead: Dead, _) => dead
    case (_, Killed(late)) => Dead(late, state.requests, state.hasGreeted)
    case (Starting, Greeted) => Idle(0)
    case (Idle(requests), Requested) => Answering(requests + 1)
    case (Answering(_), Answered(report)) => Owing(report)
    case (Owing(report), ReportRead) => Idle(report.id)
    case _ => throw new IllegalStateException(s"$event cannot follow $state")
  }
}
