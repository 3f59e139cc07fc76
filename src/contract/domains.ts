import { z } from "zod";
import { id, ofProject, slugParam, timestamp, row } from "./table.ts";
import { certificateStates, nameStates, statesOf } from "./states.ts";

const dnsRecord = z.object({ type: z.enum(["A", "AAAA", "CNAME", "TXT"]), name: z.string(), value: z.string() });

/** The records by which a hostname points here. `name` and `value` are those of the first; a name below a zone's apex may use `alias`. */
const instructions = z.object({
  type: z.enum(["A", "AAAA"]),
  name: z.string(),
  value: z.string(),
  values: z.array(z.string()),
  /** All required records, including those described by `type`, `name` and `values`. */
  records: z.array(dnsRecord),
  /** A record that may replace the address records; null where none can (at a zone's apex, or on a laptop). */
  alias: dnsRecord.nullable(),
  /** The proof of ownership, required when another organization has or had the name; null when the address records suffice. */
  txt: dnsRecord.nullable(),
  /** The registered domain in whose zone the records are created. */
  zone: z.string(),
  is_apex: z.boolean(),
  note: z.string(),
});

const domain = z.object({
  id,
  hostname: z.string(),
  dns_status: z.enum(statesOf(nameStates)),
  /** A sentence that says what was found or is missing. */
  dns_detail: z.string(),
  /** Whether requests for the name reach the project. Stays true for a while after the records disappear. */
  serving: z.boolean(),
  /** The project's name to which requests for this one are redirected, as soon as that name is served; null: none. */
  redirect_to: z.string().nullable(),
  /** How long a name whose records disappeared is still served; null when none is missing. */
  serving_until: timestamp.nullable(),
  checked_at: timestamp.nullable(),
  ssl_status: z.enum(statesOf(certificateStates)),
  ssl_detail: z.string(),
  ssl_next_attempt_at: timestamp.nullable(),
  /** The steps of the current or last attempt to get a certificate, oldest first. The last one holds the result. */
  ssl_steps: z.array(z.object({ at: timestamp, status: z.enum(statesOf(certificateStates)), detail: z.string() })),
  instructions,
  created_at: timestamp,
});

export const rows = [
  row({
    name: "domains.attach",
    request: "POST /v1/projects/:slug/domains",
    names: "project",
    may: "member domains:write",
    params: slugParam,
    body: z.strictObject({
      hostname: z.string().min(1, "must not be empty"),
      /** Another of the project's hostnames; null: no longer. Missing: as before. */
      redirect_to: z.string().min(1, "must not be empty").nullable().optional(),
    }),
    result: domain,
    success: [201, 200],
    errors: ["project_deleted", "hostname_taken", "conflict"],
    activity: "domain.attached",
    summary:
      "Attach a hostname; returns the DNS records to create. With `redirect_to`, also on one already attached, requests for it get 308 to another of the project's hostnames",
    waits: true,
  }),
  row({
    ...ofProject,
    name: "domains.list",
    request: "GET /v1/projects/:slug/domains",
    may: "member domains:read",
    result: z.object({ domains: z.array(domain) }),
    summary: "List the project's hostnames; Berth looks up each one's DNS records again at most once a minute",
    waits: true,
  }),
  row({
    ...ofProject,
    name: "domains.detach",
    request: "DELETE /v1/projects/:slug/domains/:hostname",
    may: "member domains:write",
    approval: true,
    params: slugParam.extend({ hostname: z.string() }),
    activity: "domain.detached",
    summary: "Detach a hostname; Berth stops serving it at once",
  }),
] as const;
