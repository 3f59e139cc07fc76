import { PartMissing } from "../kit/part-missing.ts";
import { outageOf } from "../kit/outage.ts";

const sentences = {
  disk_full: "The platform's disk is full (storage_full). Its operator has to make room.",
  disk_read_only: "The platform cannot write to its disk. Its operator has to repair it.",
  away: "Berth's database does not answer. Nothing was changed; try again in a minute.",
};

/** Returns the HTTP status, and the text for git's client, of a request that failed with this error. */
export function faultAnswer(error: unknown): { readonly status: 500 | 503; readonly text: string } {
  if (error instanceof PartMissing) return { status: 503, text: `${error.message}\n` };
  const outage = outageOf(error);
  return outage === undefined
    ? { status: 500, text: "Berth could not answer; try again.\n" }
    : { status: 503, text: `${sentences[outage]}\n` };
}
