import type { PageCode } from "../../ports/edge-pages.ts";
import {
  bracketed,
  certificateList,
  challengeBackend,
  hostMap,
  probeHeader,
  usageTable,
  type HaproxySettings,
} from "./haproxy-settings.ts";
import { forms } from "./page-files.ts";
import { countingRules } from "./usage.ts";

type Listener = "plain" | "tls";

/** What happens to a request and its answer on the one listener or the other, as a section of HAProxy's configuration. */
export function frontend(kind: Listener, settings: HaproxySettings): string {
  const rules = [
    `bind ${address(kind, settings)}`,
    ...trust(settings),
    ...checks(),
    ...routing(kind, settings),
    ...forwarding(kind, settings),
    ...answering(kind),
    "use_backend pages if { var(txn.page) -m found }",
    "use_backend %[var(txn.route),field(1,/)]",
  ];
  return `frontend ${kind} from base\n${rules.map((rule) => `  ${rule}\n`).join("")}`;
}

function address(kind: Listener, { listen_host, listen_port, listen_tls_port }: HaproxySettings): string {
  const host = bracketed(listen_host);
  if (kind === "plain") return `${host}:${listen_port}`;
  return `${host}:${listen_tls_port} ssl crt-list ${certificateList} strict-sni alpn h2,http/1.1`;
}

/** A proxy in front of the edge that the operator trusts says who the client is. */
function trust({ trusted_proxies }: HaproxySettings): string[] {
  if (trusted_proxies.length === 0) return [];
  return [
    `acl from-proxy src ${trusted_proxies.join(" ")}`,
    "http-request set-var(txn.proto) req.fhdr(x-forwarded-proto) if from-proxy { req.fhdr(x-forwarded-proto) -m str http https }",
    "http-request set-src req.hdr_ip(x-forwarded-for,-1) if from-proxy { req.hdr_ip(x-forwarded-for,-1) -m found }",
  ];
}

function checks(): string[] {
  const page = (code: PageCode, condition: string) => `http-request set-var(txn.page) str(${code}) if ${condition}`;
  return [
    "http-request set-var(txn.begun) date(0,us)",
    'http-request set-var-fmt(txn.accept) "%[req.fhdr(accept)] any"',
    page("bad_request", "{ req.fhdr_cnt(host) gt 1 }"),
    page("method_not_allowed", "{ method TRACE CONNECT }"),
    page(
      "not_implemented",
      "{ req.fhdr(transfer-encoding) -m found } !{ req.fhdr(transfer-encoding) -m str -i chunked }",
    ),
    // The parser has compared the authority of an absolute target with `Host`; applications get a path.
    "http-request set-uri %[pathq] if { req.ver 1.1 1.0 } { url_beg -i http:// https:// }",
  ];
}

/** The host map gives backend, flags, page, project and the notice of a page: `b7/RH//prj_…`. */
function routing(kind: Listener, settings: HaproxySettings): string[] {
  const lookUp = `req.fhdr(host),lower,field(1,:),rtrim(.),map_str(${hostMap})`;
  const isChallenge = `{ path_beg /.well-known/acme-challenge/ } { nbsrv(${challengeBackend}) gt 0 }`;
  const hasFlag = (flag: string) => `{ var(txn.route),field(2,/) -m sub ${flag} }`;
  const noPage = "!{ var(txn.page) -m found }";
  const challenge =
    kind === "plain" ? [`http-request set-var(txn.route) str(${challengeBackend}) if ${isChallenge}`] : [];
  return [
    ...challenge,
    `http-request set-var(txn.route) ${lookUp} if !{ var(txn.route) -m found }`,
    ...(kind === "tls" ? [`http-request unset-var(txn.route) if ${hasFlag("P")}`] : []),
    `http-request set-var(txn.page) str(unknown_host) if !{ var(txn.route) -m found } ${noPage}`,
    `http-request track-sc0 var(txn.route),field(4,/) table ${usageTable} if { var(txn.route) -m sub / } !{ var(txn.route),field(3,/) -m str maintenance } !${isOwn(settings)}`,
    ...(kind === "plain" ? redirect(settings, `${hasFlag("R")} ${noPage} !${isOwn(settings)}`) : []),
    `http-request set-var(txn.page) var(txn.route),field(3,/) if !{ var(txn.route) -m sub // } ${noPage}`,
  ];
}

function isOwn({ probe_key }: HaproxySettings): string {
  // A key may begin with "-", which HAProxy would read as a flag.
  return `{ req.fhdr(${probeHeader}) -m str -- ${probe_key} }`;
}

function redirect({ listen_tls_port, trusted_proxies }: HaproxySettings, condition: string): string[] {
  if (listen_tls_port === null) return [];
  const port = listen_tls_port === 443 ? "" : `:${listen_tls_port}`;
  const alreadySecure = trusted_proxies.length === 0 ? "" : " !{ var(txn.proto) -m str https }";
  const location = `https://%[req.fhdr(host),lower,field(1,:),rtrim(.)]${port}%[pathq]`;
  return [`http-request redirect code 308 location ${location} if ${condition}${alreadySecure}`];
}

/** The client's forwarding fields go, also in the spelling that CGI-like servers take for them; then the edge's own come. */
function forwarding(kind: Listener, settings: HaproxySettings): string[] {
  const { trusted_proxies, listen_port, listen_tls_port, listen_host } = settings;
  const own = kind === "plain" ? "http" : "https";
  const proto = trusted_proxies.length === 0 ? own : `%[var(txn.proto,${own})]`;
  const client = listen_host.includes(":") ? '\\"[%[src]]\\"' : "%[src]";
  return [
    "http-request lua.drop_named_fields if { req.fhdr(connection) -m found } !{ req.fhdr(connection) -m str -i keep-alive close upgrade }",
    `http-request del-header ${replacedFields} -m reg`,
    `http-request set-header ${probeHeader} ${settings.probe_key} if { var(txn.route),field(2,/) -m sub C }`,
    "http-request set-header X-Request-Id %[uuid()] if !{ req.fhdr(x-request-id) -m reg ^[a-zA-Z0-9_.:/+=-]{1,128}$ } or { req.fhdr_cnt(x-request-id) gt 1 }",
    "http-request add-header X-Forwarded-For %[src]",
    `http-request add-header X-Forwarded-Proto ${proto}`,
    "http-request add-header X-Forwarded-Host %[req.fhdr(host)]",
    `http-request add-header X-Forwarded-Port ${kind === "plain" ? listen_port : listen_tls_port}`,
    "http-request add-header X-Real-IP %[src]",
    `http-request add-header Forwarded "for=${client};host=\\"%[req.fhdr(host)]\\";proto=${proto}"`,
  ];
}

// `Proxy` becomes HTTP_PROXY in CGI-like servers (CVE-2016-5385).
const replacedFields = `'^(?:x[-_]forwarded[-_].*|forwarded|x[-_]real[-_]ip|proxy|proxy[-_].*|http2-settings|keep-alive|${probeHeader})$'`;

function answering(kind: Listener): string[] {
  const isOurs = "{ status 500 502:504 } { res.fhdr(x-berth-error) -m found } !{ var(txn.page) -m found }";
  const setType = forms.flatMap(({ form, type, accepts }) => {
    const others = form === "json" ? "!{ var(txn.accept) -m sub text/html }" : "";
    if (form === "text") return [];
    return `http-after-response set-header Content-Type "${type}" if ${isOurs} { var(txn.accept) -m sub ${accepts} } ${others}`;
  });
  const hsts =
    "http-after-response set-header Strict-Transport-Security max-age=31536000 if { var(txn.route),field(2,/) -m sub H } !{ res.fhdr(strict-transport-security) -m found }";
  return [
    ...(kind === "tls" ? [hsts] : []),
    ...setType,
    'http-after-response set-status 502 reason "Bad Gateway" if { status 500 503 } { res.fhdr(x-berth-error) -m str app_unreachable app_bad_response }',
    ...countingRules(),
  ];
}
