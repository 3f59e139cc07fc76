export { addReplicaSamples, addTraffic, pruneMetrics, type MetricRetention, type ReplicaSample } from "./sampling.ts";
export {
  addPageProbe,
  schedulePageProbes,
  claimDuePageProbes,
  type DuePageProbe,
  type PageProbeResult,
} from "./page-probes.ts";
export { countRequests } from "./queries.ts";
export { addMachineSample, selectEdgeBuckets, selectMachineBuckets } from "./machine-metrics.ts";
export { bucketStarts, quantile, ranges } from "./rules.ts";
export { edgeFamilies, storedFamilies } from "./platform-families.ts";
export { expositionText, expositionType, type Family } from "./exposition.ts";
