package beside

import java.util

import scala.collection.mutable

import org.apache.spark.sql.{SparkSession, SparkSessionExtensions}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.connector.catalog._
import org.apache.spark.sql.connector.expressions.Transform
import org.apache.spark.sql.connector.read._
import org.apache.spark.sql.connector.write._
import org.apache.spark.sql.types.{StructField, StructType}
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/** A third-party extension, whose rule runs the query of the key `beside.query` while another query is planned. */
class Planning extends (SparkSessionExtensions => Unit) {
  override def apply(extensions: SparkSessionExtensions): Unit = extensions.injectOptimizerRule(new Planning.Plans(_))
}

object Planning {
  private val inside = ThreadLocal.withInitial[Boolean](() => false)

  final class Plans(session: SparkSession) extends Rule[LogicalPlan] {
    override def apply(plan: LogicalPlan): LogicalPlan = {
      session.conf.getOption("beside.query").filterNot(_ => inside.get).foreach { text =>
        inside.set(true)
        try session.sql(text).collect()
        finally inside.set(false)
      }
      plan
    }
  }
}

/** Tables in memory that support MERGE, UPDATE and DELETE: each command reads and rewrites all rows. */
class RowCatalog extends TableCatalog {
  private val tables = mutable.HashMap.empty[Identifier, RowTable]

  override def initialize(name: String, options: CaseInsensitiveStringMap): Unit = ()
  override def name(): String = "rows"
  override def capabilities(): util.Set[TableCatalogCapability] = util.Collections.emptySet()
  override def listTables(namespace: Array[String]): Array[Identifier] = tables.keys.toArray
  override def loadTable(id: Identifier): Table =
    tables.getOrElse(id, throw new org.apache.spark.sql.catalyst.analysis.NoSuchTableException(id))
  override def createTable(
      id: Identifier, columns: Array[Column], parts: Array[Transform], properties: util.Map[String, String]): Table = {
    val table = new RowTable(id.name, StructType(columns.map(c => StructField(c.name, c.dataType, c.nullable))))
    tables.put(id, table)
    table
  }
  override def alterTable(id: Identifier, changes: TableChange*): Table = throw new UnsupportedOperationException
  override def dropTable(id: Identifier): Boolean = tables.remove(id).isDefined
  override def renameTable(old: Identifier, id: Identifier): Unit = throw new UnsupportedOperationException
}

class RowTable(override val name: String, override val schema: StructType)
    extends SupportsRowLevelOperations with SupportsRead with SupportsWrite { table =>
  @volatile private var rows: Seq[InternalRow] = Nil

  override def capabilities(): util.Set[TableCapability] =
    util.EnumSet.of(TableCapability.BATCH_READ, TableCapability.BATCH_WRITE)

  override def newScanBuilder(options: CaseInsensitiveStringMap): ScanBuilder = () => new RowScan(schema, rows)

  override def newWriteBuilder(info: LogicalWriteInfo): WriteBuilder = writing(rows ++ _)

  override def newRowLevelOperationBuilder(info: RowLevelOperationInfo): RowLevelOperationBuilder = () =>
    new RowLevelOperation {
      override def command(): RowLevelOperation.Command = info.command
      override def newScanBuilder(options: CaseInsensitiveStringMap): ScanBuilder = table.newScanBuilder(options)
      override def newWriteBuilder(info: LogicalWriteInfo): WriteBuilder = writing(identity)
    }

  private def writing(keep: Seq[InternalRow] => Seq[InternalRow]): WriteBuilder = new WriteBuilder {
    override def build(): Write = new Write {
      override def toBatch: BatchWrite = new BatchWrite {
        override def createBatchWriterFactory(info: PhysicalWriteInfo): DataWriterFactory = new RowWriters
        override def commit(messages: Array[WriterCommitMessage]): Unit =
          rows = keep(messages.toSeq.flatMap { case Written(written) => written })
        override def abort(messages: Array[WriterCommitMessage]): Unit = ()
      }
    }
  }
}

case class Written(rows: Seq[InternalRow]) extends WriterCommitMessage

class RowWriters extends DataWriterFactory {
  override def createWriter(part: Int, task: Long): DataWriter[InternalRow] = new DataWriter[InternalRow] {
    private val written = mutable.ArrayBuffer.empty[InternalRow]
    override def write(row: InternalRow): Unit = written += row.copy()
    override def commit(): WriterCommitMessage = Written(written.toList)
    override def abort(): Unit = ()
    override def close(): Unit = ()
  }
}

case class Part(rows: Seq[InternalRow]) extends InputPartition

class RowScan(schema: StructType, rows: Seq[InternalRow]) extends Scan with Batch {
  override def readSchema(): StructType = schema
  override def toBatch: Batch = this
  override def planInputPartitions(): Array[InputPartition] = Array(Part(rows))
  override def createReaderFactory(): PartitionReaderFactory = new RowReaders
}

class RowReaders extends PartitionReaderFactory {
  override def createReader(part: InputPartition): PartitionReader[InternalRow] = new PartitionReader[InternalRow] {
    private val left = part.asInstanceOf[Part].rows.iterator
    private var row: InternalRow = _
    override def next(): Boolean = {
      val more = left.hasNext
      if (more) row = left.next()
      more
    }
    override def get(): InternalRow = row
    override def close(): Unit = ()
  }
}
