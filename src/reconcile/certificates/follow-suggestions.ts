import {
  earlierRenewal,
  forwardRenewal,
  plannedRenewals,
  validText,
} from "../../features/certificates/certificates.ts";
import type { Platform } from "../platform.ts";

/**
 * Renews certificates early if their authority suggests it, such as before it revokes them (RFC 9773 §4.3). Never rejects: if the authority
 * does not respond, the next round asks again.
 */
export async function followSuggestions({ db, ports, log, wakeups }: Platform, signal: AbortSignal): Promise<void> {
  try {
    for (const { id, chain_pem, not_after, next_attempt_at } of await plannedRenewals(db)) {
      if (signal.aborted) return;
      const suggested = (await ports.certificateIssuer?.suggestedRenewal(chain_pem)) ?? null;
      const at = earlierRenewal(new Date(next_attempt_at), suggested);
      if (at === null) continue;
      await forwardRenewal(db, id, { at, detail: validText(new Date(not_after), at) });
      await wakeups.send(db, "certificates");
    }
  } catch (error) {
    log.warn({ err: error }, "Berth could not read the authority's suggested renewal times.");
  }
}
