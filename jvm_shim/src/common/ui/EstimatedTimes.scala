package org.apache.spark.sql.pyjoinopt

import java.util.Arrays

/**
 * How long queries should take by their costs, to be shown beside how long they took.
 *
 * The cost model has row units and no seconds, which depend on the machine. So a query is compared with the other
 * queries of its application:
 * {{{
 *   query 1   cost 4 M   ran 2.0 s    0.50 s a million
 *   query 2   cost 1 M   ran 0.6 s    0.60 s a million     median of the others for query 4: 0.60 s a million,
 *   query 3   cost 2 M   ran 1.6 s    0.80 s a million     so its 5 M should take 3.0 s
 * }}}
 * A query may take much longer because its row counts are wrong, or because of what costs do not include: work outside
 * of its joins, skew, other queries.
 */
private[pyjoinopt] final class EstimatedTimes(queries: Seq[QueryOrders]) {
  import EstimatedTimes._

  private val known: Array[Double] = queries.flatMap(perUnit(_)).sorted.toArray

  /** Milliseconds with the plan that ran, planning included. */
  def ofRun(query: QueryOrders): Option[Double] = unit(query).map(_ * cost(query) + math.max(0, query.planning))

  /** Milliseconds with the written orders; None unless others were chosen. */
  def asWritten(query: QueryOrders): Option[Double] =
    if (query.changed && query.costBefore < MostCost) unit(query).map(_ * query.costBefore) else None

  /** Milliseconds for each unit of cost in the other queries. */
  private def unit(query: QueryOrders): Option[Double] =
    if (cost(query) <= 0) None
    else {
      val own = perUnit(query).fold(known.length)(Arrays.binarySearch(known, _))
      val others = if (own < known.length) known.length - 1 else known.length
      val middle = others / 2
      if (others < Least) None else Some(known(if (middle < own) middle else middle + 1))
    }
}

private object EstimatedTimes {

  /** Other queries that must have ended. */
  val Least = 3

  /** Costs of plans that no cluster can run are infinite or nearly so. */
  val MostCost = 1e30

  private def perUnit(query: QueryOrders): Option[Double] = {
    val ran = query.ended - query.started - math.max(0, query.planning)
    if (query.status == QueryOrders.Finished && cost(query) > 0 && ran > 0) Some(ran / cost(query)) else None
  }

  /** Of the orders that ran; 0 or less if it is not known. */
  private def cost(query: QueryOrders): Double = {
    val cost = if (query.changed) query.costAfter else query.costBefore
    if (cost < MostCost) cost else -1
  }
}
