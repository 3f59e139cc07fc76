import assert from "node:assert/strict";
import { test } from "node:test";
import { plain } from "../../ports/edge-stage.suite.ts";
import { haproxyConfig } from "./haproxy-config.ts";
import type { HaproxySettings } from "./haproxy-settings.ts";
import { changePool, emptyPool, type RoutePool } from "./route-pool.ts";

const settings: HaproxySettings = {
  ...{ listen_host: "0.0.0.0", listen_port: 80, listen_tls_port: 443, run_dir: "/run/edge" },
  ...{ upstream_timeout_ms: 300_000, drain_limit_ms: 3_600_000, probe_key: "key", trusted_proxies: [] },
  ...{ busy_above_per_second: 100, max_body_bytes: 0 },
};
const section = (config: string, head: string) => config.split(/\n(?=\S)/).find((each) => each.startsWith(head)) ?? "";

test("a backend for each place of the pool, and the replicas that are known at the start as servers", () => {
  const target = { host: "10.0.0.2", port: 3000 };
  const targets = [target, { host: "10.0.0.3", port: 3000 }];
  const route = { hostname: "a.test", project_id: "prj_a", state: "serving" as const, targets, ...plain };
  const change = changePool(emptyPool(2), { version: 1, routes: [route], challenge: target }, new Set());
  const config = haproxyConfig(settings, (change as { next: RoutePool }).next);
  const backends = Array.from(config.matchAll(/^backend (\S+) from balanced$/gm), ([, name]) => name);
  assert.deepEqual(backends, ["challenge", "b1", "b2"]);
  assert.match(section(config, "backend b1 "), /server s1 10\.0\.0\.2:3000 check inter 10s .* on-error mark-down$/m);
  assert.equal(section(config, "backend b2 ").trim(), "backend b2 from balanced");
});

test("HTTPS is a listener of its own that accepts only names with a certificate, and is left out when switched off", () => {
  const config = haproxyConfig(settings, emptyPool(1));
  assert.match(section(config, "frontend tls "), /bind 0\.0\.0\.0:443 ssl crt-list \S+ strict-sni alpn h2,http\/1\.1/);
  assert.match(section(config, "frontend plain "), /redirect code 308 location https:/);
  const without = haproxyConfig({ ...settings, listen_tls_port: null }, emptyPool(1));
  assert.equal(section(without, "frontend tls "), "");
  assert.doesNotMatch(without, /redirect code 308/);
});

test("the platform's own key is a value, whatever its first character", () => {
  const config = haproxyConfig({ ...settings, probe_key: "-QA6rR9O" }, emptyPool(1));
  const compared = Array.from(config.matchAll(/-m str (-- )?-QA6rR9O/g), ([, flagsEnd]) => flagsEnd);
  assert.ok(compared.length > 0);
  assert.deepEqual(new Set(compared), new Set(["-- "]));
});

test("forwarding fields are believed from trusted proxies alone", () => {
  assert.doesNotMatch(haproxyConfig(settings, emptyPool(1)), /set-src|from-proxy/);
  const config = haproxyConfig({ ...settings, trusted_proxies: ["192.0.2.0/24", "2001:db8::1"] }, emptyPool(1));
  for (const name of ["plain", "tls"]) {
    const frontend = section(config, `frontend ${name} `);
    assert.match(frontend, /acl from-proxy src 192\.0\.2\.0\/24 2001:db8::1$/m);
    assert.match(frontend, /set-src .* if from-proxy /);
    assert.ok(frontend.indexOf("set-src") < frontend.indexOf("del-header"), "before the fields are removed");
    // A proxy sends requests of several clients on one connection.
    assert.match(frontend, /http-request set-var-fmt\(txn\.client\) %\[src\]$/m);
    assert.doesNotMatch(frontend, /sess\.client/);
  }
});

test("only requests that may be sent twice are sent again, and with one replica only while its connections may rest", () => {
  const config = haproxyConfig(settings, emptyPool(1));
  assert.match(section(config, "defaults project "), /retry-on conn-failure empty-response$/m);
  assert.match(
    section(config, "defaults balanced "),
    /disable-l7-retry if \{ nbsrv lt 2 \} \{ be_sess_rate gt 100 \} or !\{ method GET HEAD OPTIONS PUT DELETE \}$/m,
  );
  assert.match(section(config, "backend single "), /disable-l7-retry if !\{ method GET HEAD OPTIONS PUT DELETE \}$/m);
  const repeatable = section(config, "backend repeatable ");
  assert.match(repeatable, /http-reuse always$/m);
  assert.doesNotMatch(repeatable, /retry-on|l7-retry/);
  assert.match(section(config, "frontend plain "), /use_backend repeatable if \{ method GET HEAD OPTIONS \}$/m);
  assert.match(section(config, "backend busy "), /retry-on conn-failure$/m);
  assert.match(section(config, "frontend plain "), /use_backend busy if \{ sc0_http_req_rate gt 100 \}$/m);
});

test("a length above the limit leads to a page, except at the control plane, and a limit of 0 costs neither rule nor filter", () => {
  assert.doesNotMatch(haproxyConfig(settings, emptyPool(1)), /body_size|filter lua|if \S*body_too_large/);
  const config = haproxyConfig({ ...settings, max_body_bytes: 1000 }, emptyPool(1));
  for (const name of ["plain", "tls"])
    assert.match(
      section(config, `frontend ${name} `),
      /set-var\(txn\.route\) str\(G---\/\/pages\/body_too_large\) if !\{ req\.body_size 0:1000 \} !\{ \S+bytes\(3,1\) -m str C \}$/m,
    );
  const counted = section(config, "backend counted ");
  assert.match(counted, /filter lua\.limit-body 1000$/m);
  assert.equal(config.match(/filter /g)?.length, 1, "only requests without a stated length pay for the filter");
});

test("a client has 15 seconds for a request's head, and 60 between two parts of its body", () => {
  const base = section(haproxyConfig(settings, emptyPool(1)), "defaults base");
  assert.match(base, /^ {2}timeout http-request 15s$/m);
  assert.match(base, /^ {2}timeout client 60s$/m);
});
