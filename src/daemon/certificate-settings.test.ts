import assert from "node:assert/strict";
import { test } from "node:test";
import { silentLog } from "../kit/log.ts";
import { certificateIssuerOf, certificateSettingsOf, dnsProviderOf, hasHttps } from "./certificate-settings.ts";
import { readConfig } from "./config.ts";

const settings = (environment: Record<string, string>) => certificateSettingsOf(readConfig(environment), silentLog);

test("the authority is Let's Encrypt, its staging environment or any ACME directory; without a setting there is none", () => {
  const directory = (given: string) => settings({ BERTH_ACME_DIRECTORY: given }).directory;
  assert.equal(directory("letsencrypt"), "https://acme-v02.api.letsencrypt.org/directory");
  assert.equal(directory("letsencrypt-staging"), "https://acme-staging-v02.api.letsencrypt.org/directory");
  assert.equal(directory("https://ca.example.com/dir"), "https://ca.example.com/dir");
  assert.equal(settings({}).directory, null);
  for (const wrong of ["http://ca.example.com/dir", "zerossl"])
    assert.throws(
      () => directory(wrong),
      /BERTH_ACME_DIRECTORY must be letsencrypt, letsencrypt-staging or an https URL/,
    );
});

test("the edge listens for HTTPS once certificates are ordered or given", () => {
  assert.equal(hasHttps(readConfig({})), false);
  assert.equal(hasHttps(readConfig({ BERTH_ACME_DIRECTORY: "letsencrypt" })), true);
  assert.equal(hasHttps(readConfig({ BERTH_CERTIFICATE_FILES: "/etc/berth/own.pem" })), true);
});

test("half of an external account refuses the start with a sentence", async () => {
  const config = (BERTH_ACME_EAB: string) => readConfig({ BERTH_ACME_DIRECTORY: "letsencrypt", BERTH_ACME_EAB });
  for (const half of ["id", "id:", ":a2V5"])
    assert.throws(() => config(half), /BERTH_ACME_EAB must be a key id and a key in base64url/);
  assert.notEqual(await certificateIssuerOf(config("id:a2V5")), null);
  assert.equal(await certificateIssuerOf(readConfig({})), null);
});

test("a certificate is ordered for the control host and the applications' domain only if they are public names", () => {
  const names = (host: string, domain: string) => {
    const { controlHost, appsDomain } = settings({ BERTH_HOST: host, BERTH_DOMAIN: domain });
    return [controlHost, appsDomain];
  };
  assert.deepEqual(names("Berth.Example.com.", "apps.example.com"), ["berth.example.com", "apps.example.com"]);
  assert.deepEqual(names("127.0.0.1", "localhost"), [null, null]);
});

test("half a setting of DNS updates, a wrong address or a key that cannot be read refuse the start with a sentence", () => {
  const of = (server: string, key: string) => () =>
    dnsProviderOf(readConfig({ BERTH_DNS_UPDATE_SERVER: server, BERTH_DNS_UPDATE_KEY_FILE: key }));
  assert.throws(of("192.0.2.1", ""), /belong together/);
  assert.throws(of("ns.example.com", "/nonexistent"), /not an IP address/);
  assert.throws(of("192.0.2.1:5353", "/nonexistent"), /BERTH_DNS_UPDATE_KEY_FILE cannot be read/);
  assert.equal(of("", "")(), null);
});
