import type { OrderOutcome, RenewalWindow } from "../../ports/certificate-issuer.ts";
import type { PreviewFirsts, RecentFirsts, RecentOrders } from "./queries.ts";

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;

// Let's Encrypt allows 300 orders per account in three hours. The lower limit leaves room for renewals of other certificates.
const mostOrders = 250;

/**
 * Returns why no order may start now; null if one may. An organization may use half of the orders that the others have left, so that one
 * with very many names leaves some to the others. The platform's own names, without an organization, may use all that are left.
 */
export function whyNoOrder({ all, own, others }: RecentOrders, orgId: string | null): string | null {
  if (all >= mostOrders) return "The platform has ordered as many certificates as an authority allows in three hours.";
  if (orgId === null || !others || own * 2 < mostOrders - (all - own)) return null;
  return "The organization has ordered its share of the certificates that an authority allows the platform in three hours.";
}

/**
 * Returns why the first certificate of a name has to wait, and how long; null if it may be ordered. Of the `most` that Berth orders for a
 * registered domain in seven days, an organization may use half of what the others have left.
 */
export function whyNoFirst(
  { all, own, others, all_until, own_until }: RecentFirsts,
  { org_id, zone }: { readonly org_id: string | null; readonly zone: string },
  most: number,
  nowMs: number,
): { readonly detail: string; readonly nextMs: number } | null {
  const isFull = all >= most;
  if (!isFull && (org_id === null || !others || own * 2 < most - (all - own))) return null;
  const until = isFull ? all_until : own_until;
  const at = until === null ? nowMs + hourMs : Date.parse(until);
  const whose = isFull ? `The ${most} new certificates` : `The organization's share of the ${most} new certificates`;
  const detail = `${whose} that Berth orders for names below ${zone} in seven days are used up; the next is due at ${new Date(at).toISOString()}. Until then the name is served over HTTP.`;
  return { detail, nextMs: Math.min(dayMs, Math.max(minuteMs, at - nowMs)) };
}

/** As `whyNoFirst`, for a preview: of the `most` first certificates of previews in seven days. */
export function whyNoPreview(
  { all, all_until }: PreviewFirsts,
  most: number,
  nowMs: number,
): ReturnType<typeof whyNoFirst> {
  if (all < most) return null;
  const at = all_until === null ? nowMs + hourMs : Date.parse(all_until);
  const detail = `The ${most} new certificates that Berth orders for previews in seven days are used up; the next is due at ${new Date(at).toISOString()}. Until then the preview is served over HTTP. A wildcard certificate for the apps domain (BERTH_CERTIFICATE_FILES) needs no orders.`;
  return { detail, nextMs: Math.min(dayMs, Math.max(minuteMs, at - nowMs)) };
}

type Refused = Extract<OrderOutcome, { outcome: "refused" }>;

/** Returns what a refused order means for its certificate: the message and the pause before the next attempt. */
export function evaluateRefusal(refused: Refused, failures: number, nowMs: number): { detail: string; nextMs: number } {
  const nextMs = Math.max(pauseMs(refused.reason, failures), (refused.not_before?.getTime() ?? 0) - nowMs);
  return { detail: `${openings[refused.reason]} ${sentence(refused.detail)}`, nextMs };
}

// Let's Encrypt allows 5 failed validations of a name per hour, so make at most 3 in the first hour. Attempts that did not reach the
// authority do not count.
function pauseMs(reason: Refused["reason"], failures: number): number {
  const doubled = 2 ** Math.min(failures, 10);
  if (reason === "unreachable" || reason === "publish") return Math.min(hourMs, minuteMs * doubled);
  if (reason === "rate_limited") return Math.min(dayMs, hourMs * doubled);
  if (reason === "account") return failures === 0 ? 5000 : Math.min(dayMs, 15 * minuteMs * doubled);
  return Math.min(dayMs, 15 * minuteMs * doubled);
}

const openings: Readonly<Record<Refused["reason"], string>> = {
  unreachable: "The certificate authority does not answer.",
  rate_limited: "The certificate authority refused because its rate limit is reached.",
  account: "The certificate authority no longer accepts the platform's account; the next attempt registers a new one.",
  publish: "Berth could not publish the proof for the certificate authority:",
  challenge: "The certificate authority could not verify the name.",
  caa: "A CAA record in DNS does not allow this certificate authority to issue certificates for the name.",
  rejected: "The certificate authority refused the order.",
};

function sentence(detail: string): string {
  const clean = detail.replace(/\s+/g, " ").trim();
  return /[.!?]$/.test(clean) ? clean : `${clean}.`;
}

/** Returns when to renew: at two thirds of the lifetime, or earlier if the authority suggests it. */
export function renewalTime({ not_before, not_after }: Validity, suggested: RenewalWindow | null): Date {
  const [from, to] = [not_before.getTime(), not_after.getTime()];
  const usual = from + ((to - from) * 2) / 3;
  return new Date(suggested === null ? usual : Math.min(usual, momentIn(suggested).getTime()));
}

/** Returns the new time of a renewal planned for later than the authority now suggests; null: the plan stands. */
export function earlierRenewal(planned: Date, suggested: RenewalWindow | null): Date | null {
  return suggested !== null && suggested.to < planned ? momentIn(suggested) : null;
}

// RFC 9773 §4.2: a random time in the window, so that clients do not all renew at once.
function momentIn({ from, to }: RenewalWindow): Date {
  return new Date(from.getTime() + Math.random() * (to.getTime() - from.getTime()));
}

export function validText(notAfter: Date, renewAt: Date): string {
  return `Valid until ${notAfter.toISOString()}; Berth renews it from ${renewAt.toISOString()} on.`;
}

export interface Validity {
  readonly not_before: Date;
  readonly not_after: Date;
}

/** Combines the text of an attempt with the state of the name's present certificate. */
export function besidePresent(not_after: string | null, text: string, nowMs: number): string {
  if (not_after === null) return text;
  const end = new Date(not_after).toISOString();
  return Date.parse(not_after) > nowMs
    ? `Valid until ${end}, but not renewed yet. ${text}`
    : `The certificate expired at ${end}; the name is served over HTTP. ${text}`;
}

/** Returns the pause before the next check of a name that cannot have a certificate yet: short while its owner may create the records. */
export function nextLookMs(createdAt: string, nowMs: number): number {
  const ageMs = nowMs - Date.parse(createdAt);
  if (ageMs < hourMs) return 15_000;
  return ageMs < dayMs ? 5 * minuteMs : hourMs;
}

export function covers(names: ReadonlySet<string>, hostname: string): boolean {
  return names.has(hostname) || names.has(hostname.replace(/^[^.]+/, "*"));
}
