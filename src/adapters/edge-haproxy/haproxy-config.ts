import { pages, type PageCode } from "../../ports/edge-pages.ts";
import { answerWith, frontend, isTooLong, loop } from "./frontend.ts";
import {
  adminSocket,
  bracketed,
  busyBackend,
  challengeBackend,
  countedBackend,
  loopSocket,
  openTable,
  pagesBackend,
  repeatableBackend,
  singleBackend,
  usageTable,
  type HaproxySettings,
} from "./haproxy-settings.ts";
import {
  accept,
  appPage,
  forms,
  noticeField,
  noticeFile,
  pageFile,
  pageHeaders,
  refusedMap,
  typesMap,
} from "./page-files.ts";
import { requestRingSection } from "./request-log.ts";
import { serverWatch, type PoolServer, type RoutePool } from "./route-pool.ts";
import { countersOfProject } from "./usage.ts";

// One tenant's open requests must not exhaust the machine's connections for all tenants.
const maxOpenPerProject = 1000;
// Without a limit, HAProxy reserves memory for as many connections as the user's hard limit allows, which may be a billion.
const maxDescriptors = 200_000;

/** Returns HAProxy's complete configuration. The routes determine only the number of backends; everything else about them is set at run time. */
export function haproxyConfig(settings: HaproxySettings, pool: RoutePool): string {
  const tls = settings.listen_tls_port === null ? [] : [frontend("tls", settings)];
  const fixed = [
    globals(settings),
    requestRingSection(),
    base(settings),
    frontend("plain", settings),
    ...tls,
    loop(settings),
    pageBackend(settings),
    ...tables(),
  ];
  const projects = [
    projectDefaults(),
    counted(settings),
    single(),
    repeatable(),
    busy(),
    balancedDefaults(settings),
    ...backends(pool),
  ];
  return [...fixed, ...projects].join("\n");
}

function globals({ run_dir, drain_limit_ms }: HaproxySettings): string {
  return section("global", [
    `default-path origin ${run_dir}`,
    `stats socket ${run_dir}/${adminSocket} mode 600 level admin`,
    "stats timeout 30s",
    `fd-hard-limit ${maxDescriptors}`,
    `hard-stop-after ${drain_limit_ms}ms`,
    "log stderr format raw local0 notice",
    // All rules compare with one or two short patterns, for which the cache costs more than the comparison.
    "tune.pattern.cache-size 0",
    // Process few events per turn, requests before streams. Otherwise 200 responses of one-byte chunks that arrive together delay a
    // neighbour's request by 47 ms (p99) instead of 31 ms. With 4 events instead of 16, a request takes 15 % more processor time.
    "tune.sched.low-latency on",
    "tune.runqueue-depth 16",
    "tune.maxpollevents 16",
    "lua-load drop-named-fields.lua",
    "lua-load wake.lua",
    // Loaded after the parsing, when relative names start elsewhere.
    `lua-load-per-thread ${run_dir}/limit-body.lua`,
    "ssl-default-bind-options ssl-min-ver TLSv1.2",
  ]);
}

function base({ upstream_timeout_ms }: HaproxySettings): string {
  return section("defaults base", [
    "mode http",
    "timeout connect 5s",
    // For clients that neither send nor read; it does not apply while a client waits for its response.
    "timeout client 60s",
    `timeout server ${upstream_timeout_ms}ms`,
    "timeout tunnel 1h",
    "timeout http-request 15s",
    "timeout http-keep-alive 60s",
    // After a reload, keep idle connections open until their next request: closing them would break requests already on their way.
    "option idle-close-on-response",
    // When a client disconnects, abort its request at the application.
    "option abortonclose",
    // Wakes every stream each 5 s: HAProxy before 2.6.15 forgets one whose buffer fills at the end of a chunk (github.com/haproxy/haproxy, #2262).
    "option contstats",
  ]);
}

const pageOfRoute = `var(txn.route,${answerWith("unknown_host")}),field(4,/),field(1,|)`;

function prefers(accepts: string): string {
  return accepts === "any" ? "" : ` { var(txn.accept) -m sub ${accepts} }`;
}

function pageBackend(settings: HaproxySettings): string {
  const rules = (Object.keys(pages) as PageCode[]).flatMap((code) =>
    forms.map(
      ({ form, type, accepts }) =>
        `http-request return status ${pages[code].status} content-type "${type}" file ${pageFile(code, form)}${pageHeaders(code)} ` +
        `if { ${pageOfRoute} -m str ${code} }${prefers(accepts)}`,
    ),
  );
  return section(`backend ${pagesBackend} from base`, [...moves(settings), ...notices(), ...rules]);
}

/** Returns the rules that redirect to another hostname; plain requests keep the port that their client used. */
function moves({ listen_tls_port }: HaproxySettings): string[] {
  const tlsPort = listen_tls_port === null || listen_tls_port === 443 ? "" : `:${listen_tls_port}`;
  const hostname = "%[var(txn.route),field(6,/)]";
  const isMoved = `{ ${pageOfRoute} -m str moved }`;
  // Browsers would remember a 308 for good.
  const move = (place: string, condition: string) =>
    `http-request return status 308 hdr Cache-Control max-age=3600 hdr Location "${place}%[pathq]" if ${isMoved}${condition}`;
  return [
    move(`https://${hostname}${tlsPort}`, " { var(txn.route),field(5,/) -m str https }"),
    move(`%[var(txn.proto,http)]://${hostname}:%[req.fhdr(host),port_only]`, " { req.fhdr(host),port_only gt 0 }"),
    move(`%[var(txn.proto,http)]://${hostname}`, ""),
  ];
}

/** Returns the rules for pages that contain an application's own notice. */
function notices(): string[] {
  const { status } = pages.maintenance;
  return forms.map(
    ({ form, type, accepts }) =>
      `http-request return status ${status} content-type "${type}" lf-file ${noticeFile(form)}${pageHeaders("maintenance")} ` +
      `if { ${pageOfRoute} -m str maintenance } { ${noticeField("text")},length gt 0 }${prefers(accepts)}`,
  );
}

/** Returns the stick tables. A project's counts are kept for good; the counts of open requests expire once a replica has none. */
function tables(): string[] {
  const counted = `gpc(${countersOfProject}),http_req_cnt,http_req_rate(1s),bytes_in_cnt,bytes_out_cnt`;
  return [
    section(`backend ${usageTable} from base`, [`stick-table type string len 64 size 1m nopurge store ${counted}`]),
    section(`backend ${openTable} from base`, ["stick-table type string len 64 size 1m expire 1m store conn_cur"]),
  ];
}

function projectDefaults(): string {
  return section("defaults project from base", [
    "retries 2",
    "retry-on conn-failure empty-response",
    // Status 503 means here that no replica accepted the connection. The frontend turns 503 and 500 into 502.
    `http-error status 503 ${appPage("app_unreachable", false)}`,
    `http-error status 502 ${appPage("app_bad_response", false)}`,
    // HAProxy fails with 500 when interim responses exceed a buffer.
    `http-error status 500 ${appPage("app_bad_response", false)}`,
    `http-error status 504 ${appPage("app_timeout", false)}`,
  ]);
}

/** Refuses what two readers of a response might read differently. */
const checkResponse = [
  `http-response return ${appPage("app_bad_response")} if ${isTooLong("res")} or { res.fhdr(transfer-encoding) -m found } !{ res.fhdr(transfer-encoding) -m str -i chunked }`,
  `http-response return ${appPage("app_bad_response")} if !{ status 101:999 }`,
];

/** Returns the backend of requests whose bodies have no stated length. Its filter counts them: on all requests it would cost a third. */
function counted({ max_body_bytes, run_dir }: HaproxySettings): string {
  const isRefused = "{ status 400 } { res.fhdr(x-berth-error) -m found }";
  return section(`backend ${countedBackend} from base`, [
    ...(max_body_bytes === 0 ? [] : [`filter lua.limit-body ${max_body_bytes}`]),
    // HAProxy forwards chunks in HTTP/1.0, whose servers may not know them.
    "http-request set-var(txn.refused) str(bad_request) if !{ req.ver 1.1 2.0 } or { req.fhdr_cnt(transfer-encoding) gt 1 } or { req.fhdr(transfer-encoding) -m found } !{ req.fhdr(transfer-encoding) -m str -i chunked }",
    `http-request return ${appPage("bad_request")} if { var(txn.refused) -m found }`,
    `http-error status 400 content-type "text/plain; charset=utf-8" lf-string "%[var(txn.refused,bad_request),concat(/,txn.accept),map_reg(${refusedMap})]"${pageHeaders("bad_request").replace("bad_request", "%[var(txn.refused,bad_request)]")}`,
    `http-after-response set-header Content-Type %[${accept},map_sub(${typesMap})] if ${isRefused}`,
    `http-after-response set-status 413 reason "Request Entity Too Large" if ${isRefused} { res.fhdr(x-berth-error) -m str body_too_large }`,
    "http-reuse never",
    `server loop unix@${run_dir}/${loopSocket}`,
  ]);
}

/** Returns the one backend of all projects with a single replica. The host map names the replica, so HAProxy keeps no state for each project. */
function single(): string {
  return section(`backend ${singleBackend} from project`, [
    `http-request disable-l7-retry if ${mayNotRepeat}`,
    ...onlyReplica(),
  ]);
}

/**
 * Returns the backend of the same projects for requests that may be sent twice and rarely have a body. A visitor's first request may reuse a
 * connection, because it is sent again if the application closes that connection at this moment (unless its body exceeds HAProxy's buffer):
 * opening a new one costs half of the time.
 */
function repeatable(): string {
  return section(`backend ${repeatableBackend} from project`, ["http-reuse always", ...onlyReplica()]);
}

/**
 * Returns the backend of busy projects. With hundreds of requests a second, no kept connection is idle for long enough to be closed, so
 * requests are not repeated: HAProxy would copy its whole buffer for each repeatable request, a quarter of its time. A visitor's first
 * request may also reuse a connection: opening a new one for each costs a third.
 */
function busy(): string {
  return section(`backend ${busyBackend} from project`, [
    "retry-on conn-failure",
    "http-reuse always",
    ...onlyReplica(),
  ]);
}

function onlyReplica(): string[] {
  return [
    // Count the fields from the end: HAProxy scans a value character by character, so this is faster.
    "http-request set-dst var(txn.route),field(-2,/)",
    "http-request set-dst-port var(txn.route),field(-1,/)",
    `http-request track-sc1 var(txn.route),field(-1,/,2) table ${openTable}`,
    refuseBusy("sc1_conn_cur"),
    ...checkResponse,
    "server replica 0.0.0.0",
  ];
}

function balancedDefaults({ busy_above_per_second }: HaproxySettings): string {
  return section("defaults balanced from project", [
    "balance leastconn",
    // A replica that refuses connections must not fail requests while another one accepts them.
    "option redispatch 1",
    `http-request disable-l7-retry if { nbsrv lt 2 } { be_sess_rate gt ${busy_above_per_second} } or ${mayNotRepeat}`,
    refuseBusy("be_conn"),
    ...checkResponse,
  ]);
}

/** RFC 9110 §9.2.2: other methods must not be sent twice. */
const mayNotRepeat = "!{ method GET HEAD OPTIONS PUT DELETE }";

function refuseBusy(open: string): string {
  return `http-request return ${appPage("app_busy")} if { ${open} gt ${maxOpenPerProject} }`;
}

function backends(pool: RoutePool): string[] {
  const names = Array.from({ length: pool.size }, (_, i) => `b${i + 1}`);
  return [challengeBackend, ...names].map((name) =>
    section(`backend ${name} from balanced`, (pool.servers.get(name) ?? []).map(server)),
  );
}

function server({ name, host, port, ready }: PoolServer): string {
  return `server ${name} ${bracketed(host)}:${port} ${serverWatch}${ready ? "" : " disabled"}`;
}

function section(head: string, lines: readonly string[]): string {
  return `${head}\n${lines.map((line) => `  ${line}\n`).join("")}`;
}
