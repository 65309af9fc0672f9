package org.apache.spark.sql.pyjoinopt

import org.apache.spark.sql.connector.catalog.Table
import org.apache.spark.sql.connector.expressions.NamedReference

/**
 * The primary keys and unique constraints that a table of a catalog declares. Spark 4.1 and later know them; they are
 * asked for by name, since the same shim serves versions that do not.
 *
 * Law: Spark enforces none of them, so they are the ground of estimates and of nothing else.
 */
private[pyjoinopt] object DeclaredKeys {
  private val Unique = Set("PrimaryKey", "Unique")

  def of(table: Table): Seq[Seq[String]] = Support.attempt(Seq.empty[Seq[String]]) {
    val constraints = classOf[Table].getMethod("constraints").invoke(table).asInstanceOf[Array[AnyRef]]
    constraints.toList.filter(c => Unique(Support.className(c))).map { constraint =>
      val columns = constraint.getClass.getMethod("columns").invoke(constraint).asInstanceOf[Array[NamedReference]]
      columns.toList.map(_.fieldNames.mkString("."))
    }
  }
}
