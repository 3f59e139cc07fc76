import { z } from "zod";
import { id, slugParam, timestamp } from "./fields.ts";
import { certificateStates, nameStates, statesOf } from "./states.ts";
import { row } from "./table.ts";

/** A DNS record to create at the name's provider. */
const dnsRecord = z.object({ type: z.enum(["A", "AAAA", "CNAME", "TXT"]), name: z.string(), value: z.string() });

/** What to create so that a hostname leads here. `name` and `value` are the first record's; a name below a zone may use `alias`. */
const instructions = z.object({
  type: z.enum(["A", "AAAA"]),
  name: z.string(),
  value: z.string(),
  values: z.array(z.string()),
  /** Every record that is needed, also those of `type`, `name` and `values`. */
  records: z.array(dnsRecord),
  /** A record that may stand instead of the addresses; null where none can (at a zone's apex, or on a laptop). */
  alias: dnsRecord.nullable(),
  /** The proof that is needed because another organization has or had the name; null when the addresses are proof enough. */
  txt: dnsRecord.nullable(),
  /** The domain that was registered, below which the records are created. */
  zone: z.string(),
  is_apex: z.boolean(),
  note: z.string(),
});

const domain = z.object({
  id,
  hostname: z.string(),
  dns_status: z.enum(statesOf(nameStates)),
  /** What was found, or what is missing, in a sentence. */
  dns_detail: z.string(),
  /** Whether requests for the name reach the project. It goes on for a while when the records get lost. */
  serving: z.boolean(),
  /** Until when a name whose records got lost is still served; null when nothing is lost. */
  serving_until: timestamp.nullable(),
  checked_at: timestamp.nullable(),
  ssl_status: z.enum(statesOf(certificateStates)),
  ssl_detail: z.string(),
  ssl_next_attempt_at: timestamp.nullable(),
  /** What the present or last attempt at a certificate did, oldest first; the last one says how it ended. */
  ssl_steps: z.array(z.object({ at: timestamp, status: z.enum(statesOf(certificateStates)), detail: z.string() })),
  instructions,
  created_at: timestamp,
});

export const rows = [
  row({
    name: "domains.attach",
    method: "POST",
    path: "/v1/projects/:slug/domains",
    names: "project",
    access: "member",
    scope: "domains:write",
    params: slugParam,
    body: z.strictObject({ hostname: z.string().min(1, "must not be empty") }),
    result: domain,
    success: [201, 200],
    errors: ["project_deleted", "hostname_taken", "conflict"],
    activity: "domain.attached",
    summary: "Attach a hostname; answers with the DNS records to create",
    waits: true,
  }),
  row({
    name: "domains.list",
    method: "GET",
    path: "/v1/projects/:slug/domains",
    names: "project",
    living: true,
    access: "member",
    scope: "domains:read",
    params: slugParam,
    result: z.object({ domains: z.array(domain) }),
    success: [200],
    summary: "List the project's hostnames; each is looked up anew at most once a minute",
    waits: true,
  }),
  row({
    name: "domains.detach",
    method: "DELETE",
    path: "/v1/projects/:slug/domains/:hostname",
    names: "project",
    living: true,
    access: "member",
    scope: "domains:write",
    approval: true,
    params: slugParam.extend({ hostname: z.string() }),
    success: [204],
    activity: "domain.detached",
    summary: "Detach a hostname; it stops being served at once",
  }),
] as const;
