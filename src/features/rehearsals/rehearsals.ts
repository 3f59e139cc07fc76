export * from "./queries.ts";
export { lossesOf, reportOf, sameLosses, type LossLimits } from "./rules.ts";
