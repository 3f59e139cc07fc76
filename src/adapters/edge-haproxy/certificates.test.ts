import assert from "node:assert/strict";
import { before, test } from "node:test";
import { makeCertificate } from "../../ports/edge-stage.suite.ts";
import type { EdgeCertificate } from "../../ports/edge.ts";
import { certificateCommands, certificateFiles, certificateListText, readLoadedCertificates } from "./certificates.ts";

let shop: EdgeCertificate;
let blog: EdgeCertificate;
before(async () => {
  shop = await makeCertificate(["shop.test", "*.shop.test"]);
  blog = await makeCertificate(["blog.test"]);
});

const filesOf = (...certificates: EdgeCertificate[]) => certificateFiles({ version: 1, certificates });
const commandsOf = (certificates: EdgeCertificate[], loaded: EdgeCertificate[]) => {
  const names = filesOf(...loaded).files.map(({ name }) => name);
  const state = { listed: names, stored: names, unfinished: undefined };
  return certificateCommands(filesOf(...certificates).files, state).map(({ command }) => command);
};

test("a new certificate is loaded whole before its names lead to it, and a loaded one costs no command", () => {
  const { name, pem, line } = filesOf(shop).files[0] ?? assert.fail();
  assert.match(name, /^certificates\/[0-9a-f]{32}\.pem$/);
  assert.equal(line, `${name} shop.test *.shop.test\n`);
  assert.deepEqual(commandsOf([shop, blog], [blog]), [
    `new ssl cert ${name}`,
    `set ssl cert ${name} <<\n${pem}`,
    `commit ssl cert ${name}`,
    `add ssl crt-list certificates/list <<\n${line}`,
  ]);
  assert.deepEqual(commandsOf([shop, blog], [shop, blog]), []);
});

test("a replaced certificate leaves after the new one has come, and a removed one leaves the list first", () => {
  const renewed = { ...blog, names: shop.names };
  const [before, after] = [filesOf(shop).files[0]?.name, filesOf(renewed).files[0]?.name];
  assert.notEqual(after, before);
  const commands = commandsOf([renewed], [shop]).map((command) => command.split(" <<")[0]);
  const loads = ["new ssl cert", "set ssl cert", "commit ssl cert"].map((words) => `${words} ${after}`);
  const unloads = [`del ssl crt-list certificates/list ${before}`, `del ssl cert ${before}`];
  assert.deepEqual(commands, [...loads, "add ssl crt-list certificates/list", ...unloads]);
  assert.deepEqual(commandsOf([], [shop]), unloads);
});

test("a certificate whose file is written already is not parsed again", () => {
  const garbage = { names: ["garbage.test"], chain_pem: "garbage", key_pem: "garbage" };
  const asked: string[] = [];
  const { files } = certificateFiles({ version: 1, certificates: [garbage] }, (name) => asked.push(name) > 0);
  assert.deepEqual(
    files.map(({ name }) => name),
    asked,
  );
});

test("a certificate that cannot be read, or whose key is another one's, is left out by its names", () => {
  const garbage = { names: ["garbage.test"], chain_pem: "garbage", key_pem: "garbage" };
  const stranger = { ...shop, names: ["stranger.test"], key_pem: blog.key_pem };
  const { files, unreadable } = filesOf(garbage, stranger, blog);
  assert.deepEqual(
    [files.map(({ line }) => line.split(" ")[1]), unreadable],
    [["blog.test\n"], ["garbage.test", "stranger.test"]],
  );
});

test("no line of a payload is blank, which would end it", () => {
  const spaced = { ...shop, chain_pem: `\n\n${shop.chain_pem.replaceAll("\n", "\r\n")}\n  \n` };
  const [set] = commandsOf([spaced], []).filter((command) => command.startsWith("set ssl cert"));
  assert.doesNotMatch(set ?? "", /\n\s*\n|\r/);
});

test("a load that was interrupted goes on where it stopped, and one that is no longer wanted is removed", () => {
  const { files } = filesOf(shop, blog);
  const [{ name }, left] = files as [(typeof files)[0], (typeof files)[0]];
  const shown = `# transaction\n*${name}\n# filename\n${name}\n${left.name}\n\n`;
  const state = readLoadedCertificates("", shown);
  const words = certificateCommands([files[0] ?? assert.fail()], state).map(({ command }) => command.split(" <<")[0]);
  assert.deepEqual(words, [
    `abort ssl cert ${name}`,
    `set ssl cert ${name}`,
    `commit ssl cert ${name}`,
    "add ssl crt-list certificates/list",
    `del ssl cert ${left.name}`,
  ]);
  assert.equal(readLoadedCertificates("", `# filename\n${name}\n`).unfinished, undefined);
});

test("HAProxy's own list names what is loaded", () => {
  const { files } = filesOf(shop, blog);
  const shown = `# certificates/list\n${certificateListText(files)}\n`;
  assert.deepEqual(
    readLoadedCertificates(shown, "").listed,
    files.map(({ name }) => name),
  );
});
