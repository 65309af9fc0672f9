package org.apache.spark.sql.pyjoinopt

import org.apache.spark.sql.connector.catalog.Table
import org.apache.spark.sql.connector.expressions.NamedReference

/**
 * The primary keys and unique constraints that a catalog table declares. Spark 4.1 and later have them; they are read
 * by reflection, since the same jar serves older versions.
 *
 * Law: Spark enforces no constraint, so they are used for estimates only.
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
