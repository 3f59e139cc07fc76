import assert from "node:assert/strict";
import { test } from "node:test";
import { seededRandom } from "../../test/support/seeded-random.ts";
import { envFileProblems, readEnvFile } from "./env-file.ts";

// Answers of dotenv 18.0.10 and compose-go 2.16.2, which agree on these files.
const alike: readonly (readonly [file: string, variables: Record<string, string>])[] = [
  ["", {}],
  ["# c\n\n  # d", {}],
  ["A=", { A: "" }],
  ['A=""', { A: "" }],
  ["A=''", { A: "" }],
  ["A= b ", { A: "b" }],
  ["A = b", { A: "b" }],
  ["export A=b", { A: "b" }],
  ["A==b=", { A: "=b=" }],
  ["A=b # c", { A: "b" }],
  ["A=b # c # d", { A: "b" }],
  ['A="b # c" # d', { A: "b # c" }],
  ["A='b'#c", { A: "b" }],
  ["A='$B ${C}'", { A: "$B ${C}" }],
  ["A=5$ or $5", { A: "5$ or $5" }],
  ['A="x\\ny"', { A: "x\ny" }],
  ["A='x\\ny'", { A: "x\\ny" }],
  ["A=x\\ny", { A: "x\\ny" }],
  ['A="1\n2"\nB=3', { A: "1\n2", B: "3" }],
  [`A='{"type":"account"}'`, { A: '{"type":"account"}' }],
  [`A="it's"`, { A: "it's" }],
  ["A=it's", { A: "it's" }],
  ['A=b"c"', { A: 'b"c"' }],
  ['A="C:\\dir"', { A: "C:\\dir" }],
  ["A=1\nA=2", { A: "2" }],
  ["A=b\r\nB=c\r\n", { A: "b", B: "c" }],
  ["\uFEFFA=b", { A: "b" }],
];

// They disagree, or at least one of them cuts the value.
const refused: readonly (readonly [file: string, problem: RegExp])[] = [
  ['A=1\nB="{\\"type\\":\\"account\\"}"', /^line 2 \(B\): .*backslash/],
  ["A='it\\'s fine'", /^line 1 \(A\): .*double quotes/],
  ["A='b\\\\'\nB='c'", /^line 1 \(A\): .*double quotes/],
  ['A="a" b', /^line 1 \(A\): text follows the closing quote/],
  ["A='a'b", /^line 1 \(A\): text follows/],
  ['A="a\nB="c"', /^line 1 \(A\): text follows/],
  ['A=1\nB="b', /^line 2 \(B\): its quote never closes/],
  ["A=b#c", /^line 1 \(A\): .*#/],
  ["A=b#c # d", /^line 1 \(A\): .*#/],
  ["A=#c", /^line 1 \(A\): .*#/],
  ["A= # c", /^line 1 \(A\): .*#/],
  ["A=b\t# c", /^line 1 \(A\): .*#/],
  ["A=`b`", /^line 1 \(A\): .*single or double/],
  ["A=$B", /^line 1 \(A\): .*\$/],
  ["A=b$$c", /^line 1 \(A\): .*\$/],
  ['A="${B}"', /^line 1 \(A\): .*\$/],
  ['A="b\\tc"', /^line 1 \(A\): .*backslash/],
  ['A="b\\\\c"', /^line 1 \(A\): .*backslash/],
  ["A: b", /^line 1: is not KEY=VALUE/],
  ["A", /^line 1: is not KEY=VALUE/],
  ["export =b", /^line 1: is not/],
  ["__proto__=b", /^line 1: is not/],
  ["A-B=c", /^line 1: is not/],
  ['A="1\r\n2"', /^line 1 \(A\): .*line ends/],
  ["A=b\rB=c", /^line 1 \(A\): .*line ends/],
  ["# c\u2028A=b", /^line 1: .*line ends/],
  ["A=b\u00A0", /^line 1 \(A\): .*unusual space/],
];

test("a file is read as Docker Compose and dotenv read it", () => {
  for (const [file, variables] of alike) {
    const read = readEnvFile(file);
    assert.deepEqual(envFileProblems(read), [], JSON.stringify(file));
    assert.deepEqual(Object.fromEntries(read.map(({ key, value }) => [key, value])), variables, JSON.stringify(file));
  }
});

test("a line that they read differently is refused with its number, and no problem repeats a value", () => {
  for (const [file, problem] of refused) {
    const problems = envFileProblems(readEnvFile(file));
    assert.equal(problems.length, 1, JSON.stringify(file));
    assert.match(problems[0] as string, problem);
  }
  assert.ok(!JSON.stringify(envFileProblems(readEnvFile('A="planted\nB=planted"planted'))).includes("planted"));
  assert.deepEqual(
    envFileProblems(readEnvFile("A=$B\nB=1\nC=`x`\n")).map((each) => each.slice(0, 10)),
    ["line 1 (A)", "line 3 (C)"],
  );
});

test("a value in single quotes is read unchanged, and any text behind the quotes refuses the line", () => {
  const random = seededRandom();
  const below = (limit: number) => Math.floor(random() * limit);
  const pieces = ["x", " ", "#", " #", '"', "`", "\\", "\\n", "$A", "${A}", "\n", "=", "export ", "é"];
  for (let round = 0; round < 5000; round += 1) {
    const text = `${Array.from({ length: below(10) }, () => pieces[below(pieces.length)]).join("")}.`;
    const file = (after: string) => `A=1\nB='${text}'${after}\nC=2`;
    const values = readEnvFile(file(below(2) === 0 ? "" : " # c")).map(({ value }) => value);
    assert.deepEqual(values, ["1", text, "2"], JSON.stringify(text));
    assert.match(envFileProblems(readEnvFile(file(" x")))[0] ?? "", /^line 2 \(B\): text follows/);
  }
});
