import { pages, type PageCode } from "../../ports/edge-pages.ts";
import { frontend } from "./frontend.ts";
import {
  adminSocket,
  bracketed,
  busyBackend,
  challengeBackend,
  openTable,
  pagesBackend,
  singleBackend,
  usageTable,
  type HaproxySettings,
} from "./haproxy-settings.ts";
import { appPage, forms, noticeField, noticeFile, pageFile, pageHeaders } from "./page-files.ts";
import { serverWatch, type PoolServer, type RoutePool } from "./route-pool.ts";
import { countersOfProject } from "./usage.ts";

// One tenant's open requests shall not use up what the machine gives to all of them.
const maxOpenPerProject = 1000;
// Without it HAProxy reserves memory for as many connections as the user's hard limit allows, which may be a billion.
const maxDescriptors = 200_000;

/** HAProxy's whole configuration. Only the backends depend on the routes, and only as far as their number; the rest follows at run time. */
export function haproxyConfig(settings: HaproxySettings, pool: RoutePool): string {
  const tls = settings.listen_tls_port === null ? [] : [frontend("tls", settings)];
  const fixed = [globals(settings), base(settings), frontend("plain", settings), ...tls, pageBackend(), ...tables()];
  return [...fixed, projectDefaults(), single(), busy(), balancedDefaults(settings), ...backends(pool)].join("\n");
}

function globals({ run_dir, drain_limit_ms }: HaproxySettings): string {
  return section("global", [
    `default-path origin ${run_dir}`,
    `stats socket ${run_dir}/${adminSocket} mode 600 level admin`,
    "stats timeout 30s",
    `fd-hard-limit ${maxDescriptors}`,
    `hard-stop-after ${drain_limit_ms}ms`,
    "log stderr format raw local0 notice",
    // The cache costs more than comparing with one or two short patterns, of which all rules consist.
    "tune.pattern.cache-size 0",
    "lua-load drop-named-fields.lua",
    "ssl-default-bind-options ssl-min-ver TLSv1.2",
  ]);
}

function base({ upstream_timeout_ms }: HaproxySettings): string {
  return section("defaults base", [
    "mode http",
    "timeout connect 5s",
    // For clients that neither send nor read; one that waits for its answer is not meant.
    "timeout client 60s",
    `timeout server ${upstream_timeout_ms}ms`,
    "timeout tunnel 1h",
    "timeout http-request 15s",
    "timeout http-keep-alive 60s",
    // A reload leaves idle connections to their clients: closing them would cut requests that are on their way.
    "option idle-close-on-response",
    // A client that is gone ends its request at the application.
    "option abortonclose",
  ]);
}

const pageOfRoute = "var(txn.route),field(4,/),field(1,|)";

function prefers(accepts: string): string {
  return accepts === "any" ? "" : ` { var(txn.accept) -m sub ${accepts} }`;
}

/** Answers by the page that the route names. */
function pageBackend(): string {
  const rules = (Object.keys(pages) as PageCode[]).flatMap((code) =>
    forms.map(
      ({ form, type, accepts }) =>
        `http-request return status ${pages[code].status} content-type "${type}" file ${pageFile(code, form)}${pageHeaders(code)} ` +
        `if { ${pageOfRoute} -m str ${code} }${prefers(accepts)}`,
    ),
  );
  return section(`backend ${pagesBackend} from base`, [...notices(), ...rules]);
}

/** Pages with an application's own words. */
function notices(): string[] {
  const { status } = pages.maintenance;
  return forms.map(
    ({ form, type, accepts }) =>
      `http-request return status ${status} content-type "${type}" lf-file ${noticeFile(form)}${pageHeaders("maintenance")} ` +
      `if { ${pageOfRoute} -m str maintenance } { ${noticeField("text")},length gt 0 }${prefers(accepts)}`,
  );
}

/** Counts of projects stay; what is open to a replica is of interest for as long as something is. */
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
    // 503 says here that no replica took the connection. The frontend makes 502 of it and of 500.
    `http-error status 503 ${appPage("app_unreachable", false)}`,
    `http-error status 502 ${appPage("app_bad_response", false)}`,
    // More interim answers than fit a buffer end in a 500.
    `http-error status 500 ${appPage("app_bad_response", false)}`,
    `http-error status 504 ${appPage("app_timeout", false)}`,
  ]);
}

/** All projects with one replica, which the host map names: HAProxy keeps nothing for each of them. */
function single(): string {
  return section(`backend ${singleBackend} from project`, [
    `http-request disable-l7-retry if ${mayNotRepeat}`,
    ...onlyReplica(),
  ]);
}

/**
 * Where hundreds of requests come each second, no kept connection rests. So none is repeated: HAProxy copies its whole buffer for each request that
 * it may repeat, a quarter of its time. And the first request of a visitor takes a kept connection too: a new one for each costs a third.
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
    // Counted from the end, because HAProxy goes through a value letter by letter.
    "http-request set-dst var(txn.route),field(-2,/)",
    "http-request set-dst-port var(txn.route),field(-1,/)",
    `http-request track-sc1 var(txn.route),field(-1,/,2) table ${openTable}`,
    refuseBusy("sc1_conn_cur"),
    "server replica 0.0.0.0",
  ];
}

function balancedDefaults({ busy_above_per_second }: HaproxySettings): string {
  return section("defaults balanced from project", [
    "balance leastconn",
    // A replica that refuses costs no request while another one answers.
    "option redispatch 1",
    `http-request disable-l7-retry if { nbsrv lt 2 } { be_sess_rate gt ${busy_above_per_second} } or ${mayNotRepeat}`,
    refuseBusy("be_conn"),
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
