import type { PageCode } from "../../ports/edge-pages.ts";
import {
  bracketed,
  busyBackend,
  certificateList,
  challengeBackend,
  countedBackend,
  hostMap,
  kinds,
  loopFrontend,
  loopSocket,
  pagesBackend,
  probeHeader,
  repeatableBackend,
  singleBackend,
  usageTable,
  type HaproxySettings,
} from "./haproxy-settings.ts";
import { accept, typesMap } from "./page-files.ts";
import { choosing, requestLog } from "./request-log.ts";
import { countingRules } from "./usage.ts";
import { wakeSocket } from "./wake-socket.ts";

type Listener = "plain" | "tls";

/** Returns the configuration section of the plain or the TLS listener, with all rules for requests and responses. */
export function frontend(kind: Listener, settings: HaproxySettings): string {
  const rules = [
    `bind ${address(kind, settings)}`,
    ...requestLog(),
    ...connection(settings),
    ...trust(settings),
    ...routing(kind),
    ...counting(settings),
    ...choosing(),
    ...checks(settings),
    ...(kind === "plain" ? redirect(settings) : []),
    ...waking(settings),
    ...forwarding(kind, settings),
    ...answering(kind),
    ...[isChunked, isUnstatedInHttp2].map(
      (condition) => `use_backend ${countedBackend} if ${condition} !${isOfKind("page")}`,
    ),
    // A request without a Host has no route.
    `use_backend %[${route},field(3,/)] if !${isOfKind("single")}`,
    `use_backend ${busyBackend} if { sc0_http_req_rate gt ${settings.busy_above_per_second} }`,
    `use_backend ${repeatableBackend} if { method GET HEAD OPTIONS }`,
    `default_backend ${singleBackend}`,
  ];
  return section(kind, rules);
}

/** Returns the frontend at which a request arrives again once its body is counted. It finds the route by the host, which a reload may change. */
export function loop({ run_dir }: HaproxySettings): string {
  const rules = [
    `bind unix@${run_dir}/${loopSocket} mode 600`,
    `http-request set-var(txn.route) ${lookUp}`,
    "http-request set-var(txn.accept) req.fhdr(accept)",
    `use_backend %[${route},field(3,/)] if !${isOfKind("single")}`,
    `default_backend ${singleBackend}`,
  ];
  return section(loopFrontend, rules);
}

function section(name: string, rules: readonly string[]): string {
  return `frontend ${name} from base\n${rules.map((rule) => `  ${rule}\n`).join("")}`;
}

const route = `var(txn.route,${answerWith("unknown_host")})`;
const isChunked = "{ req.fhdr(transfer-encoding) -m found }";
const isUnstatedInHttp2 = "{ req.ver 2.0 } !{ req.fhdr(content-length) -m found } !{ method GET HEAD OPTIONS }";

function address(kind: Listener, { listen_host, listen_port, listen_tls_port }: HaproxySettings): string {
  const host = bracketed(listen_host);
  if (kind === "plain") return `${host}:${listen_port}`;
  return `${host}:${listen_tls_port} ssl crt-list ${certificateList} strict-sni alpn h2,http/1.1`;
}

/** Returns the rules that run once per connection: formatting an address as text costs as much as five other rules. */
function connection(settings: HaproxySettings): string[] {
  const client = `tcp-request session set-var-fmt(${clientOf(settings)}) %[src]`;
  // The default destination, for a route that names no replica: an invalid address. Otherwise HAProxy would connect to the address that the
  // client dialled, which is the edge's own.
  const nowhere = ["tcp-request session set-dst ipv4(255.255.255.255)", "tcp-request session set-dst-port int(1)"];
  const once = [...nowhere, "tcp-request session set-var(sess.id) uuid"];
  return settings.trusted_proxies.length === 0 ? [client, ...once] : once;
}

/** Returns the variable with the client's address as text: of the request behind a proxy, which sends several clients' on one connection. */
function clientOf({ trusted_proxies }: HaproxySettings): string {
  return trusted_proxies.length === 0 ? "sess.client" : "txn.client";
}

/** Returns the rules that take the client's address and protocol from a trusted proxy in front of the edge. */
function trust(settings: HaproxySettings): string[] {
  const { trusted_proxies } = settings;
  if (trusted_proxies.length === 0) return [];
  return [
    `acl from-proxy src ${trusted_proxies.join(" ")}`,
    "http-request set-var(txn.proto) req.fhdr(x-forwarded-proto) if from-proxy { req.fhdr(x-forwarded-proto) -m str http https }",
    "http-request set-src req.hdr_ip(x-forwarded-for,-1) if from-proxy { req.hdr_ip(x-forwarded-for,-1) -m found }",
    `http-request set-var-fmt(${clientOf(settings)}) %[src]`,
  ];
}

/** Returns the rules that look up the route in the host map, whose values are like `SRH-/prj_…/10.0.0.2/3000` or `B---/prj_…/b7`. */
function routing(kind: Listener): string[] {
  const isChallenge = `{ path_beg /.well-known/acme-challenge/ } { nbsrv(${challengeBackend}) gt 0 }`;
  return [
    "http-request set-var(txn.begun) date(0,us)",
    `http-request set-var(txn.route) ${lookUp}`,
    kind === "plain"
      ? `http-request set-var(txn.route) str(${kinds.balanced}---//${challengeBackend}) if ${isChallenge}`
      : `http-request set-var(txn.route) str(${answerWith("unknown_host")}) if ${isHttps("P")}`,
    "http-request set-var(txn.accept) req.fhdr(accept)",
  ];
}

export function answerWith(code: PageCode): string {
  return `${kinds.page}---//${pagesBackend}/${code}`;
}

const lookUp = `req.fhdr(host),lower,field(1,:),rtrim(.),map_str(${hostMap},${answerWith("unknown_host")})`;

/**
 * Refuses what HAProxy's parser accepts and an application might read differently; the backend of counted requests checks transfer codings.
 * The parser itself refuses contradictory hosts and lengths, signs, and transfer codings other than `chunked`.
 */
function checks({ max_body_bytes }: HaproxySettings): string[] {
  // A length above 2^63 reads as a negative number.
  const isTooLarge = `!{ req.body_size 0:${max_body_bytes} } !${hasFlag("C")}`;
  const answer = (code: PageCode, condition: string) =>
    `http-request set-var(txn.route) str(${answerWith(code)}) if ${condition}`;
  return [
    ...(max_body_bytes === 0 ? [] : [answer("body_too_large", isTooLarge)]),
    // HAProxy reads a length of 2^64 as 0 and forwards it.
    answer("bad_request", isTooLong("req")),
    answer("bad_request", "{ req.ver 0.9 }"),
    `http-request set-var(txn.route) str(${answerWith("method_not_allowed")}) if { method TRACE CONNECT }`,
    // The parser has checked that the authority of an absolute URL equals `Host`; applications receive only the path.
    "http-request set-uri %[pathq] if { url_beg -i http:// https:// } { req.ver 1.1 1.0 }",
  ];
}

/** Counts requests by the route's project; challenges, unknown hosts and maintenance pages belong to no project. */
function counting(settings: HaproxySettings): string[] {
  return [`http-request track-sc0 var(txn.route),field(2,/) table ${usageTable} if !${isOwn(settings)}`];
}

/** Returns a condition: the stated length has more digits than a body can have bytes. */
export const isTooLong = (what: "req" | "res"): string => `{ ${what}.fhdr(content-length) -m len gt 19 }`;

function isOfKind(kind: keyof typeof kinds): string {
  return `{ var(txn.route) -m beg ${kinds[kind]} }`;
}

/** Returns a condition: the route redirects plain requests to HTTPS (R), or serves plain requests only (P). */
function isHttps(flag: "R" | "P"): string {
  const beginnings = Object.values(kinds).map((kind) => `${kind}${flag}`);
  return `{ var(txn.route) -m beg ${beginnings.join(" ")} }`;
}

/** Returns a condition: responses carry HSTS (H), or the route leads to the control plane (C). */
function hasFlag(flag: "H" | "C"): string {
  return `{ var(txn.route),bytes(${flag === "H" ? 2 : 3},1) -m str ${flag} }`;
}

/** Holds requests to an application that is asleep, and looks up the route again. The platform's own requests wake nothing. */
function waking(settings: HaproxySettings): string[] {
  const isAsleep = `{ var(txn.route) -m end /asleep } !${isOwn(settings)}`;
  return [
    `http-request lua.wake ${settings.run_dir}/${wakeSocket} if ${isAsleep}`,
    `http-request set-var(txn.route) ${lookUp} if ${isAsleep}`,
  ];
}

function isOwn({ probe_key }: HaproxySettings): string {
  // The key may start with "-", so `--` keeps HAProxy from reading it as a flag.
  return `{ req.fhdr(${probeHeader}) -m str -- ${probe_key} }`;
}

function redirect(settings: HaproxySettings): string[] {
  const { listen_tls_port, trusted_proxies } = settings;
  if (listen_tls_port === null) return [];
  const port = listen_tls_port === 443 ? "" : `:${listen_tls_port}`;
  const alreadySecure = trusted_proxies.length === 0 ? "" : " !{ var(txn.proto) -m str https }";
  const location = `https://%[req.fhdr(host),lower,field(1,:),rtrim(.)]${port}%[pathq]`;
  return [`http-request redirect code 308 location ${location} if ${isHttps("R")} !${isOwn(settings)}${alreadySecure}`];
}

/** Removes the client's forwarding fields, including spellings that CGI-like servers treat as equal, then adds the edge's own. */
function forwarding(kind: Listener, settings: HaproxySettings): string[] {
  const { trusted_proxies, listen_port, listen_tls_port } = settings;
  const own = kind === "plain" ? "http" : "https";
  const proto = trusted_proxies.length === 0 ? own : `%[var(txn.proto,${own})]`;
  const client = `%[var(${clientOf(settings)})]`;
  return [
    "http-request lua.drop_named_fields if { req.fhdr(connection) -m found } !{ req.fhdr(connection) -m str -i keep-alive close upgrade }",
    // del-header tries the expression on each field's name, so skip it unless some name contains one of the words.
    `http-request del-header ${replacedFields} -m reg if { req.hdr_names -m sub ${replacedWords} }`,
    `http-request set-header ${probeHeader} ${settings.probe_key} if ${hasFlag("C")}`,
    // Connection id and request counter: unique among this worker's requests.
    "http-request set-header X-Request-Id %[var(sess.id)]-%rt if !{ req.fhdr(x-request-id) -m reg ^[a-zA-Z0-9_.:/+=-]{1,128}$ } or { req.fhdr_cnt(x-request-id) gt 1 }",
    "http-request set-var(txn.id) req.fhdr(x-request-id)",
    addFields([
      ["X-Forwarded-For", client],
      ["X-Forwarded-Proto", proto],
      ["X-Forwarded-Host", "%[req.fhdr(host)]"],
      ["X-Forwarded-Port", `${kind === "plain" ? listen_port : listen_tls_port}`],
      ["X-Real-IP", client],
    ]),
  ];
}

/** Returns one rule that adds several fields, as the value of the first: a rule for each costs twice as much. Values hold no line breaks. */
function addFields(fields: readonly (readonly [name: string, value: string])[]): string {
  const lines = fields.map(([name, value]) => `${name}:\\ ${value}`).join("\\r\\n");
  return `http-request add-header ${lines.replace(":\\ ", " ")}`;
}

// `Proxy` becomes HTTP_PROXY in CGI-like servers (CVE-2016-5385), which read `_` like `-`.
const replacedFields = `'^(?:content_length|transfer_encoding|x[-_]forwarded[-_].*|forwarded|x[-_]real[-_]ip|proxy|proxy[-_].*|http2-settings|keep-alive|${probeHeader})$'`;

// Every name that the expression matches contains one of these words.
const replacedWords = `_ forwarded real proxy http2 keep-alive ${probeHeader}`;

function answering(kind: Listener): string[] {
  const isOurs = `{ status 500 502:504 } { res.fhdr(x-berth-error) -m found } !${isOfKind("page")}`;
  const hsts = `http-after-response set-header Strict-Transport-Security max-age=31536000 if ${hasFlag("H")} !{ res.fhdr(strict-transport-security) -m found }`;
  return [
    ...(kind === "tls" ? [hsts] : []),
    `http-after-response set-header Content-Type %[${accept},map_sub(${typesMap})] if ${isOurs}`,
    'http-after-response set-status 502 reason "Bad Gateway" if { status 500 503 } { res.fhdr(x-berth-error) -m str app_unreachable app_bad_response }',
    ...countingRules(),
  ];
}
