package org.apache.spark.sql.pyjoinopt

import java.util.concurrent.ConcurrentHashMap

import org.apache.commons.text.similarity.LevenshteinDistance

import org.apache.spark.SparkEnv

/**
 * Warns of unknown keys `spark.pyjoinopt.*`, which are misspelled most often: once a key and process.
 *
 * Law: the names are those of `config.py`; a test compares the two lists.
 */
private[pyjoinopt] object UnknownKeys {
  private val Prefix = "spark.pyjoinopt."
  val Known: Seq[String] = Seq(
    "strategy", "hints", "hintSlack", "cost", "costConstants", "statistics", "statisticsWithout", "rewritesWithout",
    "statisticsMs", "backgroundMb", "sessionBackgroundMb", "store", "feedback", "guard", "baseline", "strict",
    "pairBudget", "searchSeconds", "enabled", "python", "pythonpath", "timeout", "prestart", "startTimeout", "workers",
    "storeFunctions", "mode", "canary", "allowTables", "denyTables", "allowDescriptions", "denyDescriptions", "locked")
  private val known = Known.map(Prefix + _).toSet
  private val warned = ConcurrentHashMap.newKeySet[String]
  private val MaxWarnings = 1000

  /** Check the application's configuration: a misspelled key may be one on which the start of a worker depends. */
  def ofApplication(): Unit = Support.attempt(()) {
    Option(SparkEnv.get).foreach { env =>
      warn(env.conf.getAllWithPrefix(Prefix).map(Prefix + _._1))
      val locked = env.conf.get(Prefix + "locked", "").split(',').map(_.trim.stripPrefix(Prefix)).filter(_.nonEmpty)
      for (name <- locked if name != "*" && !known(Prefix + name) && warned.add(s"locked $name"))
        OptimizeJoins.log.warn(
          s"${Prefix}locked has $name, which is no setting; did you mean ${closest(Prefix + name)}?")
    }
  }

  /** Check the configuration of a session. */
  def of(session: Compat.Session): Unit = warn(session.sessionState.conf.getAllConfs.keys)

  private def warn(keys: Iterable[String]): Unit =
    for (key <- keys if key.startsWith(Prefix) && !known(key) && warned.size < MaxWarnings && warned.add(key))
      OptimizeJoins.log.warn(
        s"The setting $key is unknown and has no effect; did you mean ${closest(key)}? " +
          s"Settings are ${Known.map(Prefix + _).mkString(", ")}.")

  private def closest(key: String): String = {
    val distance = LevenshteinDistance.getDefaultInstance
    known.toSeq.sorted.minBy(name => distance(name.toLowerCase, key.toLowerCase).intValue)
  }
}
