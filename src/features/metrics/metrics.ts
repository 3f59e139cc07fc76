export { addReplicaSamples, addTraffic, pruneMetrics, type MetricRetention, type ReplicaSample } from "./sampling.ts";
export { addLook, enlistLooks, takeDueLooks, type DueLook, type PageLook } from "./looks.ts";
export { countRequests } from "./queries.ts";
export { edgeFamilies, storedFamilies } from "./platform-families.ts";
export { expositionText, expositionType, type Family } from "./exposition.ts";
