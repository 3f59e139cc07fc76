import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { seededRandom } from "../../../test/support/seeded-random.ts";
import { parseHostname } from "./parse-hostname.ts";

const random = seededRandom();
const randomInt = (below: number) => Math.floor(random() * below);
const own = { appsDomain: "apps.example.net", controlHost: "berth.example.net" };
const parsed = (text: string) => parseHostname(text, own);
const hostnameOf = (text: string) => {
  const result = parsed(text);
  return "refused" in result ? `refused: ${result.refused}` : result.hostname;
};

describe("one name has one spelling", () => {
  const spellings: Readonly<Record<string, readonly string[]>> = {
    "app.example.com": [
      "app.example.com",
      "APP.Example.COM",
      "app.example.com.",
      "ａｐｐ.example.com",
      "app。example。com",
      "app\u00ad.example.com",
    ],
    "xn--mnchen-3ya.de": ["münchen.de", "MÜNCHEN.de", "mu\u0308nchen.de", "xn--mnchen-3ya.de", "XN--MNCHEN-3YA.DE."],
    "xn--fa-hia.de": ["faß.de"],
    "xn--e1afmkfd.xn--p1ai": ["пример.рф"],
  };
  for (const [hostname, texts] of Object.entries(spellings))
    for (const text of texts)
      test(`${JSON.stringify(text)} is ${hostname}`, () => assert.equal(hostnameOf(text), hostname));

  test("the zone is what was registered, below suffixes of companies too", () => {
    const zones = ["www.example.co.uk", "example.com", "a.b.me.github.io", "x.y.test"].map((text) => parsed(text));
    assert.deepEqual(
      zones.map((each) => "zone" in each && each.zone),
      ["example.co.uk", "example.com", "me.github.io", "y.test"],
    );
  });
});

describe("what no project can have is refused", () => {
  const refused: Readonly<Record<string, readonly string[]>> = {
    wildcards: ["*.example.com", "*", "a.*.com", "w*w.example.com"],
    "single labels": ["localhost", "intranet", "com", "com."],
    "public suffixes": ["co.uk", "github.io", "kobe.jp", "рф", "xn--p1ai", "CO.UK."],
    "special names": ["x.localhost", "a.b.onion", "1.0.0.127.in-addr.arpa", "x.invalid"],
    "names of private networks": [
      "x.local",
      "PRINTER.Local.",
      "x.lan",
      "x.home",
      "x.corp",
      "x.home.arpa",
      "x.intranet",
    ],
    "names of a cloud's own services": ["metadata.google.internal", "x.internal", "ip-10-0-0-1.ec2.internal"],
    "the platform's own names": [
      "apps.example.net",
      "demo.apps.example.net",
      "a.b.APPS.example.net.",
      "Berth.Example.net",
      "ＡＰＰＳ.example.net",
    ],
    "URLs and parts of them": [
      "https://example.com",
      "example.com/",
      "example.com:80",
      "user@example.com",
      "example.com?x",
      "ä.com/x",
      "ä.com#x",
      "//example.com",
      "ä.com\\x",
    ],
    "malformed labels": [
      "",
      ".",
      "..",
      ".example.com",
      "a..example.com",
      "example.com..",
      "-a.example.com",
      "a-.example.com",
      "a_b.example.com",
      `${"a".repeat(64)}.com`,
      `${"ä".repeat(64)}.com`,
    ],
    "names that are too long": [`${"a.".repeat(126)}com`, "a.".repeat(4000), `${"ä.".repeat(100)}com`],
    "false A-labels": ["xn--a.com", "xn--example.com", "xn--.com", "xn--zzzzzzz99.com"],
    "white space and control characters": [
      " example.com",
      "example.com\n",
      "exa mple.com",
      "example\0.com",
      "example.com\u00a0",
    ],
    "percent-encoding": ["%65xample.com", "example%2ecom", "ä%2ecom.de"],
  };
  for (const [what, texts] of Object.entries(refused))
    for (const text of texts)
      test(`${what}: ${JSON.stringify(text.slice(0, 40))}`, () =>
        assert.ok("refused" in parsed(text), hostnameOf(text)));
});

/**
 * Returns a spelling that programs read as an IPv4 address: 1 to 4 parts, each decimal, octal or hexadecimal, in any case and any digits.
 */
function spellIpv4(): string {
  const address = [0, 0, 0, 0].map(() => randomInt(256));
  const count = 1 + randomInt(4);
  const tail = address.slice(count - 1).reduce((sum, byte) => sum * 256 + byte, 0);
  const parts = [...address.slice(0, count - 1), tail].map(spellNumber);
  const dot = [".", "。", "．", "｡"][randomInt(4)] as string;
  const text = parts.join(dot) + ["", "."][randomInt(2)];
  return randomInt(4) === 0 ? fullWidth(text) : text;
}

function spellNumber(number: number): string {
  const spellings = [
    `${number}`,
    `0${number.toString(8)}`,
    `000${number.toString(8)}`,
    `0x${number.toString(16)}`,
    `0X${number.toString(16).toUpperCase()}`,
    `0x000${number.toString(16)}`,
  ];
  return spellings[randomInt(spellings.length)] as string;
}

function fullWidth(text: string): string {
  return text.replaceAll(/[0-9a-zA-Z]/g, (letter) => String.fromCodePoint((letter.codePointAt(0) as number) + 0xfee0));
}

describe("IP addresses are refused in every spelling", () => {
  test("IPv4: 5,000 random spellings", () => {
    for (let count = 0; count < 5000; count += 1) {
      const text = spellIpv4();
      assert.ok("refused" in parsed(text), text);
    }
  });

  test("whatever a URL parser takes for an address is refused, and what it does not is left as it is", () => {
    const alphabet = "0123456789abcdefxX.．１";
    let names = 0;
    for (let count = 0; count < 20_000; count += 1) {
      const text = Array.from({ length: 1 + randomInt(13) }, () => alphabet[randomInt(alphabet.length)]).join("");
      const result = parsed(text);
      if ("refused" in result) continue;
      names += 1;
      assert.equal(new URL(`http://${text}`).hostname.replace(/\.$/, ""), result.hostname);
      assert.doesNotMatch(result.hostname, /^[\d.]+$/);
    }
    assert.ok(names > 100);
  });

  const others = [
    "::1",
    "[::1]",
    "[::ffff:127.0.0.1]",
    "::ffff:7f00:1",
    "[2001:db8::1]:80",
    "fe80::1%eth0",
    "2001:DB8::1",
    "127.1",
    "1.2.3.4.5",
    "999.999.999.999",
    "0x7f.0.0.1",
    "example.1",
    "example.0x1",
    "example.0x",
  ];
  for (const text of others) test(text, () => assert.ok("refused" in parsed(text)));
});
