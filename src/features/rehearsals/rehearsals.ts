export {
  abandonedRehearsals,
  askerOf,
  beginRehearsal,
  endRehearsal,
  hasReleasedSince,
  noteCleared,
  noteCopy,
  promotionSeen,
  rehearsalOf,
  type Outcome,
} from "./queries.ts";
export { lossesOf, reportOf, sameLosses, type LossLimits } from "./rules.ts";
