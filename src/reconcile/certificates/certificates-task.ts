import {
  besidePresent,
  changedHostnames,
  claimDue,
  deleteAccount,
  deleteChallenge,
  earlierRenewal,
  evaluateRefusal,
  forwardRenewal,
  insertChallenge,
  nextLookMs,
  openAccount,
  plannedRenewals,
  previewFirsts,
  recentFirsts,
  recentOrders,
  renewalTime,
  saveAccountUrl,
  saveAttempt,
  saveStep,
  storeCertificate,
  syncWanted,
  validText,
  whyNoFirst,
  whyNoOrder,
  whyNoPreview,
  type DueCertificate,
  type WantedName,
} from "../../features/certificates/certificates.ts";
import { zoneOf } from "../../features/domains/domains.ts";
import { awaitEdges } from "../../features/routes/routes.ts";
import type { CertificateIssuer, ChallengePublisher, OrderOutcome } from "../../ports/certificate-issuer.ts";
import type { EdgeCertificate } from "../../ports/edge.ts";
import type { Lease } from "../../store/leases.ts";
import type { Task, Platform } from "../platform.ts";
import { createLeasedWork } from "../leased-work.ts";
import { checkName } from "./check-name.ts";

const periodMs = 5000;
const concurrent = 8;
// The name servers of an organization's names may be slow on purpose.
const perOrganization = 4;
const unhandledFaultMs = 300_000;
// How often the names to certify are stored. Names no longer wanted lose their certificate some time after it has expired.
const syncEveryMs = 60_000;
const overLimitMs = 600_000;
// RFC 9773 §4.3.2 lets an authority specify this interval; most specify six hours.
const suggestionsEveryMs = 6 * 3_600_000;

/** Obtains a certificate for every served hostname and renews it before it expires. `again` makes the task run soon. */
export function certificatesTask(platform: Platform, again: () => void): Task {
  const { db, owner } = platform;
  const work = createLeasedWork<DueCertificate>(platform, {
    table: "certificate",
    ...{ limit: concurrent, perOrganization },
    take: (inProgress) => claimDue(db, owner, inProgress),
    work: (due, lease) => attempt(platform, due, lease),
    broken: async (due, lease, stopping) => {
      const detail = "The attempt failed with an internal error; the platform's log has the reason.";
      const nextMs = stopping ? 0 : unhandledFaultMs;
      await saveAttempt(db, lease, { status: "failed", detail, failures: due.failures, nextMs });
      await platform.wakeups.send(db, "certificates");
    },
  });
  const syncNames = createNameSync(platform);
  let suggestions: Promise<void> = Promise.resolve();
  let suggestionsAtMs = -Infinity;
  return {
    name: "certificates",
    periodMs,
    topics: ["certificates", "domains"],
    async run(signal) {
      if (platform.ports.certificateIssuer === null) return { detail: "no authority is set" };
      await syncNames();
      if (performance.now() - suggestionsAtMs > suggestionsEveryMs) {
        suggestionsAtMs = performance.now();
        suggestions = followSuggestions(platform, signal);
      }
      const running = await work.fill(signal, again);
      return { detail: running === 0 ? "nothing is due" : `${running} under way` };
    },
    async settle() {
      await Promise.all([work.settle(), suggestions]);
    },
  };
}

/** Stores which names need a certificate, whenever they change and once a minute. */
function createNameSync(platform: Platform): () => Promise<void> {
  const hostnames = createHostnames(platform);
  let synced = "";
  let syncedAtMs = -Infinity;
  return async () => {
    const wanted = wantedNames(platform, await hostnames());
    const mark = wanted.map(({ hostname }) => hostname).join();
    if (mark === synced && performance.now() - syncedAtMs < syncEveryMs) return;
    await syncWanted(platform.db, wanted);
    synced = mark;
    syncedAtMs = performance.now();
  };
}

type OwnedName = Pick<WantedName, "hostname" | "org_id">;

/** Returns a function that reads the hostnames of all projects; each call queries only the projects that changed since the last. */
function createHostnames({ db, certificates: { appsDomain }, ports }: Platform): () => Promise<readonly OwnedName[]> {
  const known = new Map<string, readonly OwnedName[]>();
  let since: string | null = null;
  return async () => {
    const { snapshot, projects } = await changedHostnames(db, since, appsDomain !== null && ports.dnsProvider === null);
    for (const { project_id, org_id, hostnames } of projects)
      known.set(
        project_id,
        hostnames.map((hostname) => ({ hostname, org_id })),
      );
    since = snapshot;
    return [...known.values()].flat();
  };
}

/** Returns all names that need a certificate and are not covered by the platform's own certificates. */
function wantedNames({ certificates, ports }: Platform, hostnames: readonly OwnedName[]): readonly WantedName[] {
  const { appsDomain, controlHost } = certificates;
  const wildcard = ports.dnsProvider !== null && appsDomain !== null ? `*.${appsDomain}` : null;
  const own = new Set(certificates.own().flatMap((certificate: EdgeCertificate) => certificate.names));
  const isCovered = (name: string) => own.has(name) || own.has(name.replace(/^[^.]+/, "*"));
  const plain = new Map(hostnames.map(({ hostname, org_id }) => [hostname, org_id]));
  if (controlHost !== null) plain.set(controlHost, null);
  const byHttp = [...plain].filter(([name]) => !isCovered(name) && name.replace(/^[^.]+/, "*") !== wildcard);
  const wanted = byHttp.map(([name, org_id]) => wantedName(name, org_id, "http-01"));
  return wildcard === null || own.has(wildcard) ? wanted : [...wanted, wantedName(wildcard, null, "dns-01")];
}

function wantedName(hostname: string, org_id: string | null, challenge: WantedName["challenge"]): WantedName {
  const plain = hostname.replace(/^\*\./, "");
  return { hostname, org_id, challenge, zone: zoneOf(plain) ?? plain };
}

/** Makes one attempt: check the name, order, store. */
async function attempt(platform: Platform, due: DueCertificate, lease: Lease): Promise<void> {
  const { db, clock, wakeups } = platform;
  const { failures } = due;
  const trouble = await checkName(platform, due);
  const nowMs = clock.now().getTime();
  if (trouble !== null) {
    const detail = besidePresent(due.not_after, `No certificate is ordered: ${trouble}`, nowMs);
    return saveAttempt(db, lease, { status: "pending", detail, failures, nextMs: nextLookMs(due.created_at, nowMs) });
  }
  const tooMany = whyNoOrder(await recentOrders(db, due.org_id), due.org_id);
  if (tooMany !== null) {
    const detail = besidePresent(due.not_after, tooMany, nowMs);
    return saveAttempt(db, lease, { status: "pending", detail, failures, nextMs: overLimitMs });
  }
  const waits = await whyNoFirstOf(platform, due);
  if (waits !== null) return saveAttempt(db, lease, { status: "pending", failures, ...waits });
  await saveAttempt(db, lease, {
    status: "issuing",
    detail: "Berth is ordering the certificate.",
    failures,
    nextMs: 0,
  });
  const outcome = await order(platform, due, lease);
  if (outcome.outcome === "issued") await finish(platform, { due, lease }, outcome);
  else {
    const refused = evaluateRefusal(outcome, failures, clock.now().getTime());
    const detail = besidePresent(due.not_after, refused.detail, clock.now().getTime());
    await saveAttempt(db, lease, { status: "failed", failures: failures + 1, detail, nextMs: refused.nextMs });
  }
  await wakeups.send(db, "certificates");
}

async function whyNoFirstOf({ db, clock, certificates }: Platform, due: DueCertificate) {
  if (due.first_issued_at !== null) return null;
  const nowMs = clock.now().getTime();
  const previews = await previewFirsts(db, due);
  const waits = previews && whyNoPreview(previews, certificates.weeklyPreviews, nowMs);
  return waits ?? whyNoFirst(await recentFirsts(db, due), due, certificates.weeklyFirsts, nowMs);
}

type Issued = Extract<OrderOutcome, { outcome: "issued" }>;

async function finish(
  platform: Platform,
  work: { readonly due: DueCertificate; readonly lease: Lease },
  issued: Issued,
): Promise<void> {
  const { db, clock, settings } = platform;
  const validity = await storeCertificate(platform, work, issued);
  await saveStep(db, work.lease, "The certificate was issued; the edges are loading it.");
  const renewAt = renewalTime(validity, await issuerOf(platform).suggestedRenewal(issued.chain_pem));
  const nextMs = Math.max(0, renewAt.getTime() - clock.now().getTime());
  const valid = validText(validity.not_after, renewAt);
  // An edge that is late gets the certificate at its next sync; until the renewal, the status mentions it.
  const edges = await awaitEdges(platform, { timeoutMs: settings.edgeConfirmMs, of: "certificate_version" });
  const detail = edges === "confirmed" ? valid : `${valid} Not every edge has confirmed it yet.`;
  await saveAttempt(db, work.lease, { status: "active", detail, failures: 0, nextMs });
}

async function order(platform: Platform, due: DueCertificate, lease: Lease): Promise<OrderOutcome> {
  const { db, certificates } = platform;
  const directory = certificates.directory as string;
  const account = await openAccount(platform, directory, () => issuerOf(platform).createAccountKey());
  const names = [due.hostname];
  const publisher = due.challenge === "http-01" ? overHttp(platform) : overDns(platform);
  const challenges = withSteps(publisher, (detail) => saveStep(db, lease, detail));
  const outcome = await issuerOf(platform).order({ names, challenge: due.challenge, account }, challenges);
  if (outcome.outcome === "issued" && account.url === null) await saveAccountUrl(db, directory, outcome.account_url);
  if (outcome.outcome === "refused" && outcome.reason === "account") await deleteAccount(db, directory, account.url);
  return outcome;
}

function issuerOf({ ports }: Platform): CertificateIssuer {
  if (ports.certificateIssuer === null) throw new Error("no certificate authority is set");
  return ports.certificateIssuer;
}

/** Wraps a publisher so that the certificate's status shows the progress of an order. */
function withSteps(publisher: ChallengePublisher, say: (detail: string) => Promise<void>): ChallengePublisher {
  return {
    async publish(challenge) {
      await publisher.publish(challenge);
      await say("The certificate authority is verifying the name.");
    },
    async withdraw(challenge) {
      await publisher.withdraw(challenge);
      await say("The certificate authority has verified the name; Berth is fetching the certificate.");
    },
  };
}

function overHttp({ db }: Platform): ChallengePublisher {
  return {
    publish: ({ token, hostname, text: answer }) => insertChallenge(db, { token, hostname, answer }),
    withdraw: ({ token }) => deleteChallenge(db, token),
  };
}

function overDns({ ports, log }: Platform): ChallengePublisher {
  const provider = ports.dnsProvider;
  if (provider === null) throw new Error("no DNS provider is set");
  const record = (hostname: string, value: string) => ({ name: `_acme-challenge.${hostname}`, value });
  return {
    publish: ({ hostname, text }) => provider.addText(record(hostname, text)),
    // A leftover record is harmless; a failed removal must not lose the certificate.
    withdraw: ({ hostname, text }) =>
      provider.removeText(record(hostname, text)).catch((error: Error) => {
        log.warn({ name: `_acme-challenge.${hostname}`, error: error.message }, "Berth could not remove a TXT record.");
      }),
  };
}

/** Renews certificates early if their authority suggests it (RFC 9773 §4.3). If it does not answer, the next round asks again. */
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
