import { isIPv6 } from "node:net";
import type { Result } from "../../contract/routes.ts";
import type { DomainSettings } from "./domains.ts";
import { zoneOf } from "./parse-hostname.ts";
import type { DomainRow } from "./queries.ts";
import { proofName } from "./rules.ts";

type Presented = Result<"domains.attach">;
type Instructions = Presented["instructions"];

export function presentDomain(settings: DomainSettings, row: DomainRow): Presented {
  return {
    ...row,
    serving: row.verified_at !== null,
    serving_until: row.lost_at === null ? null : new Date(Date.parse(row.lost_at) + settings.graceMs).toISOString(),
    ...certificateOf(settings, row),
    instructions: instructionsFor(settings, row),
  };
}

type CertificateFields = Pick<Presented, "ssl_status" | "ssl_detail" | "ssl_next_attempt_at">;

/** Returns the state of the name's certificate. A name without an ordered certificate may be covered by one of the platform's. */
function certificateOf(settings: DomainSettings, row: DomainRow): CertificateFields {
  const { ssl_status, ssl_detail, ssl_next_attempt_at, dns_status, hostname } = row;
  if (ssl_detail !== null) return { ssl_status, ssl_detail, ssl_next_attempt_at };
  if (settings.servesHttps(hostname))
    return { ssl_status: "active", ssl_detail: "A certificate of the platform covers the name.", ssl_next_attempt_at };
  const isHere = dns_status === "ok";
  if (settings.ordersCertificates) {
    const text = "The name has no certificate yet; Berth orders one as soon as its DNS records point here.";
    return { ssl_status, ssl_detail: text, ssl_next_attempt_at: row.created_at };
  }
  const way = isHere ? "; it is served over HTTP." : ", and its DNS records do not point here.";
  return { ssl_status, ssl_detail: `The name has no certificate${way}`, ssl_next_attempt_at };
}

function instructionsFor(settings: DomainSettings, row: DomainRow): Instructions {
  const { hostname: name, zone } = row;
  const records = settings.publicAddresses.map(
    (value) => ({ type: isIPv6(value) ? "AAAA" : "A", name, value }) as const,
  );
  const type = records.some((record) => record.type === "A") ? "A" : "AAAA";
  const values = records.filter((record) => record.type === type).map((record) => record.value);
  const txt = row.needs_txt ? ({ type: "TXT", name: proofName(name), value: row.proof } as const) : null;
  const alias = aliasFor(settings, row);
  return {
    type,
    name,
    value: values[0] ?? "",
    values,
    // Other machines cannot reach a loopback address, so omit its records.
    records: [...(settings.isPublic ? records : []), ...(txt === null ? [] : [txt])],
    alias,
    txt,
    zone,
    is_apex: name === zone,
    note: noteFor(row, { type, hasAlias: alias !== null, hasTxt: txt !== null, isPublic: settings.isPublic }),
  };
}

// A zone's apex has other records, so it cannot have a CNAME (RFC 1034 §3.6.2).
function aliasFor({ appsDomain }: DomainSettings, row: DomainRow): Instructions["alias"] {
  if (row.hostname === row.zone || /(?:^|\.)localhost$/.test(appsDomain) || zoneOf(appsDomain) === null) return null;
  return { type: "CNAME", name: row.hostname, value: row.default_hostname };
}

interface Noted {
  readonly type: string;
  readonly hasAlias: boolean;
  readonly hasTxt: boolean;
  readonly isPublic: boolean;
}

function noteFor({ hostname, zone }: DomainRow, has: Noted): string {
  if (!has.isPublic)
    return "This platform has no public address yet, so other machines cannot reach it. Its operator has to set BERTH_LISTEN and BERTH_PUBLIC_ADDRESSES and restart it; then this shows the records to create.";
  const sentences = [
    `Create the ${has.type} record in the zone ${zone} and remove other A and AAAA records of ${hostname}.`,
  ];
  if (hostname === zone) sentences.push("The name is the zone's apex, where DNS does not allow a CNAME record.");
  if (has.hasAlias) sentences.push("You can create the CNAME record in `alias` instead.");
  if (has.hasTxt)
    sentences.push("The TXT record proves that you own the name; you can remove it once the name is served.");
  return sentences.join(" ");
}
