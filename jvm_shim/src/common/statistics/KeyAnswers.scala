package org.apache.spark.sql.pyjoinopt

import java.util.concurrent.{TimeUnit, TimeoutException}

import com.fasterxml.jackson.core.JsonGenerator
import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.sql.catalyst.expressions.ExprId
import org.apache.spark.sql.execution.datasources.LogicalRelation

/**
 * Answers a request for keys: for each relation, which sets of its columns are unique.
 *
 * Law: no Spark job is started. A proof that is not ready at the deadline is answered by null and continues; one that
 * is refused, by the reason.
 */
private[pyjoinopt] final class KeyAnswers(handle: Handle, request: JsonNode) {
  private val until = System.nanoTime + TimeUnit.MILLISECONDS.toNanos(request.path("deadlineMs").asLong(1000))
  private val limits = {
    val usual = KeyProofs.Limits()
    KeyProofs.Limits(
      request.path("mostRows").asLong(usual.rows),
      request.path("mostBytes").asLong(usual.bytes),
      request.path("mostParts").asInt(usual.parts))
  }
  private val ofSession = ReadBudget.ofSession(handle.session)
  private val budget = {
    def most(field: String) = request.path(field).asLong(Long.MaxValue)
    new ReadBudget(handle.keyBytes, most("mostOfQuery"), ofSession, most("mostOfSession"))
  }
  private val expressions = new RequestExpressions(handle, request)

  def run(): String = Support.json { out =>
    val proofs = ExpressionBuilder.elements(request.get("proofs")).map(begin)
    out.writeStartObject()
    out.writeArrayFieldStart("proofs")
    proofs.foreach { sets =>
      out.writeStartArray()
      sets.foreach(answer(out, _))
      out.writeEndArray()
    }
    out.writeEndArray()
    out.writeNumberField("read", ofSession.get)
    out.writeEndObject()
  }

  private def begin(entry: JsonNode): List[Option[KeyProofs.Proof]] = {
    val files = (entry.path("id").asText, entry.path("schema").asText)
    val sets = ExpressionBuilder.elements(entry.get("sets")).map(set => ExpressionBuilder.elements(set).map(_.asInt))
    handle.nodes.lift(entry.path("node").asInt(-1)) match {
      case Some(relation: LogicalRelation) =>
        val names: Map[ExprId, String] = relation.output.zip(relation.relation.schema.fieldNames).map {
          case (attribute, name) => attribute.exprId -> name
        }.toMap
        val partitions = expressions.partitions(relation, entry.get("partitions"))
        sets.map { set =>
          val columns = set.flatMap(n => names.get(handle.attribute(n).exprId))
          if (columns.length < set.length) None
          else KeyProofs.begin(handle.session, files, relation, columns.toSet, partitions, limits, budget)
        }
      case _ => sets.map(_ => None)
    }
  }

  private def answer(out: JsonGenerator, proof: Option[KeyProofs.Proof]): Unit =
    proof.map(FileStatistics.await(_, until, giveUp = false)) match {
      case Some(Right(Right(unique))) => out.writeBoolean(unique)
      case Some(Right(Left(reason))) => out.writeString(reason)
      case Some(Left(_: TimeoutException)) => out.writeNull()
      case _ => out.writeBoolean(false) // final: Python does not repeat the request
    }
}
