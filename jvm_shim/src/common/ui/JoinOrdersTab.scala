package org.apache.spark.sql.pyjoinopt

import java.util.{Collections, WeakHashMap}

import org.apache.spark.{SparkConf, SparkContext}
import org.apache.spark.scheduler.SparkListener
import org.apache.spark.status.{AppHistoryServerPlugin, ElementTrackingStore}
import org.apache.spark.ui.{SparkUI, SparkUITab}

/** The tab "Join orders" of Spark's UI. */
private[pyjoinopt] final class JoinOrdersTab(val store: JoinOrdersStore, ui: SparkUI)
    extends SparkUITab(ui, JoinOrdersTab.Prefix) {
  override val name = "Join orders"

  attachPage(new JoinOrdersPage(this))
  attachPage(new QueryPage(this))
  ui.attachTab(this)
}

/**
 * Adds the tab to the UI of a driver, and the listeners for it.
 *
 * Laws: once an application. Without a UI or an event log there are no listeners.
 */
private[pyjoinopt] object JoinOrdersTab {
  val Prefix = "joinorders"

  private val attached =
    Collections.synchronizedSet(Collections.newSetFromMap(new WeakHashMap[SparkContext, java.lang.Boolean]))

  /** Add the tab to the UI of the active application. */
  def ofApplication(): Unit = Support.attempt(())(SparkContext.getActive.foreach(attach))

  def attach(context: SparkContext): Unit = Support.attempt(()) {
    if (PlanEvents.areRead(context) && !context.isStopped && attached.add(context)) {
      context.addSparkListener(new PlanEvents.ExecutedQueries(context))
      context.ui.foreach(add(context, _))
    }
  }

  private def add(context: SparkContext, ui: SparkUI): Unit = {
    val elements = context.statusStore.store
    context.listenerBus.addToStatusQueue(new JoinOrdersListener(elements, retained(context.conf)))
    val store = new JoinOrdersStore(elements)
    new JoinOrdersTab(store, ui)
    val application = s"/api/v1/applications/${context.applicationId}"
    (application +: context.applicationAttemptId.map(attempt => s"$application/$attempt").toSeq).foreach { path =>
      attachServlet(ui, s"$path/$Prefix", new JoinOrdersServlet(store))
    }
  }

  /** By its name: scalac cannot read the other method of this name, whose classes of Jetty have other packages in a jar. */
  private def attachServlet(ui: SparkUI, path: String, servlet: Compat.HttpServlet): Unit =
    ui.getClass.getMethods.find(method => method.getName == "attachHandler" && method.getParameterCount == 3)
      .foreach(_.invoke(ui, path, servlet, "/*"))

  /** As many queries as Spark's SQL tab has executions. */
  def retained(conf: SparkConf): Int = conf.getInt("spark.sql.ui.retainedExecutions", 1000)
}

/** Adds the tab to the applications of a History Server which has the jar in its class path. */
private[pyjoinopt] final class JoinOrdersHistoryPlugin extends AppHistoryServerPlugin {
  override def createListeners(conf: SparkConf, store: ElementTrackingStore): Seq[SparkListener] =
    Support.attempt(Seq.empty[SparkListener])(Seq(new JoinOrdersListener(store, JoinOrdersTab.retained(conf))))

  override def setupUI(ui: SparkUI): Unit = Support.attempt(()) {
    val store = new JoinOrdersStore(ui.store.store)
    if (store.nonEmpty) new JoinOrdersTab(store, ui)
  }
}
