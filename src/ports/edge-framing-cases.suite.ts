import type { Random } from "./edge-attack.suite.ts";

// What an edge forwards must have one meaning for every server. A strict reader stands for all applications: it accepts no head that two
// servers might read differently.

const [half, whole] = [2n ** 63n, 2n ** 64n];
const lengths = [
  ...[half - 1n, half, half + 1n, whole - 2n, whole - 1n, whole, whole + 1n, whole + 5n, whole * 10n, whole ** 2n].map(
    String,
  ),
  ...[
    "",
    " ",
    "5",
    "005",
    `${"0".repeat(40)}5`,
    "+5",
    "-5",
    "-0",
    "5 ",
    "5\t",
    "\t5",
    "5, 5",
    "5,6",
    "5,",
    ",5",
    "5;",
    "5 5",
  ],
  ...[
    "0x5",
    "5.0",
    "5e0",
    "5_0",
    "5\x0b",
    "5\x0c",
    "5\0",
    "\xa05",
    "\xb2",
    "9".repeat(19),
    "9".repeat(20),
    "1".repeat(300),
  ],
];
const codings = [
  ...[
    "chunked",
    "Chunked",
    " chunked",
    "chunked ",
    "\tchunked",
    "chunked\t",
    "chunked\x0b",
    "\x0bchunked",
    "chunked\0",
    '"chunked"',
  ],
  ...[
    "chunked, identity",
    "identity, chunked",
    "identity",
    "gzip, chunked",
    "xchunked",
    "chunkedx",
    "chunked;a=b",
    "chunked,",
  ],
  ...[",chunked", "chunked, chunked", "chun ked", "chunked\xa0", ""],
];
const lengthNames = [
  "Content-Length",
  "content-length",
  "CONTENT-LENGTH",
  "Content_Length",
  "Content-Length ",
  "Content-Length\t",
];
const codingNames = [
  "Transfer-Encoding",
  "transfer-encoding",
  "Transfer_Encoding",
  "Transfer-Encoding ",
  "Transfer-Encoding\x0b",
];
const otherFields = [
  ...[
    "X: a\x01b",
    "X: a\x7fb",
    "X: a\0b",
    "X: a\rb",
    "X: a\x0bb",
    "X: \xff\xfe",
    "X:",
    ":x",
    "X",
    " X: folded",
    "X : y",
    "X\0: y",
  ],
  ...[
    "Host: other.test",
    "Host : other.test",
    "host:",
    "Host: raw.test, other.test",
    "X-A: b\r\n continued",
    "Connection: content-length",
  ],
  ...[
    "Connection: transfer-encoding, close",
    "Connection: host",
    "Expect: 100-continue, x",
    "Upgrade: h2c",
    "Proxy: x",
    "TE: trailers",
  ],
  ...[
    "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA",
    "Keep-Alive: timeout=0",
  ],
];
const versions = [
  "HTTP/1.1",
  "HTTP/1.1",
  "HTTP/1.1",
  "HTTP/1.0",
  "HTTP/1.2",
  "HTTP/2.0",
  "HTTP/0.9",
  "HTTP/1.1 ",
  "http/1.1",
  "HTTP/01.1",
];
const targets = [
  "/",
  "/",
  "/a b",
  "/a\0b",
  "/\x01",
  "/#f",
  "/\x7f",
  "/\xff",
  "*",
  "http://raw.test/x",
  "http://other.test/",
  "//x",
  "/a\tb",
  "",
];
const methods = [
  "POST",
  "POST",
  "GET",
  "PUT",
  "DELETE",
  "HEAD",
  "OPTIONS",
  "M\x01",
  "P OST",
  "",
  "get",
  "TRACE",
  "CONNECT",
  "PRI",
];
const bodies = [
  ...[
    "",
    "hello",
    "5\r\nhello\r\n0\r\n\r\n",
    "0\r\n\r\n",
    "0x5\r\nhello\r\n0\r\n\r\n",
    "+5\r\nhello\r\n0\r\n\r\n",
    "5 \r\nhello\r\n0\r\n\r\n",
  ],
  ...[
    "5;a=b\r\nhello\r\n0\r\n\r\n",
    "5\nhello\n0\n\n",
    "00000000000000005\r\nhello\r\n0\r\n\r\n",
    "10000000000000005\r\nhello\r\n0\r\n\r\n",
  ],
  ...[
    "FFFFFFFFFFFFFFFF\r\nhello",
    "5\r\nhelloX\r\n0\r\n\r\n",
    "0\r\nContent-Length: 5\r\n\r\n",
    "0\r\nX: a\x01\r\n\r\n",
    "0\r\nHost: x\r\n\r\n",
  ],
];
const ends = ["\r\n", "\r\n", "\r\n", "\n", "\r"];

interface Strange {
  readonly method?: string;
  readonly target?: string;
  readonly version?: string;
  readonly fields: readonly string[];
  readonly body?: string;
  readonly end?: string;
}

const write = ({
  method = "POST",
  target = "/",
  version = "HTTP/1.1",
  fields,
  body = "",
  end = "\r\n",
}: Strange): string => [`${method} ${target} ${version}`, "Host: raw.test", ...fields, "", body].join(end);

/** Returns each unusual part alone, and `count` random combinations. */
export function strangeRequests(random: Random, count: number): readonly string[] {
  const pick = (list: readonly string[]) => list[random(list.length)] as string;
  const lengthFields = lengths.map((value) => `Content-Length: ${value}`);
  const codingFields = codings.map((value) => `Transfer-Encoding: ${value}`);
  const names = [...lengthNames.map((name) => `${name}: 5`), ...codingNames.map((name) => `${name}: chunked`)];
  const alone: Strange[] = [
    ...[...lengthFields, ...names].map((field) => ({ fields: [field], body: "hello" })),
    ...[...lengthFields, ...names].map((field) => ({ fields: [field, "Content-Length: 5"], body: "hello" })),
    ...codingFields.flatMap((field) =>
      [[field], [field, "Content-Length: 5"], ["Transfer-Encoding: chunked", field]].map((fields) => ({
        ...{ fields, body: "5\r\nhello\r\n0\r\n\r\n" },
      })),
    ),
    ...otherFields.map((field) => ({ fields: [field, "Content-Length: 5"], body: "hello" })),
    ...bodies.map((body) => ({ fields: ["Transfer-Encoding: chunked"], body })),
    ...versions.map((version) => ({ version, fields: ["Transfer-Encoding: chunked"], body: "0\r\n\r\n" })),
    ...targets.map((target) => ({ target, fields: [] })),
    ...methods.map((method) => ({ method, fields: ["Content-Length: 5"], body: "hello" })),
  ];
  const combined = Array.from({ length: count }, (): Strange => {
    const anyField = () => pick([pick(lengthFields), pick(codingFields), pick(names), pick(otherFields)]);
    const parts = {
      method: pick(methods),
      target: pick(targets),
      version: pick(versions),
      body: pick(bodies),
      end: pick(ends),
    };
    return { ...parts, fields: Array.from({ length: 1 + random(3) }, anyField) };
  });
  return [...alone, ...combined].map(write);
}

/** Reads requests as strictly as possible; what it rejects, some server might read differently. */
export function readStrictly(text: string): { readonly faults: readonly string[]; readonly count: number } {
  const faults: string[] = [];
  let rest = text;
  let count = 0;
  while (rest !== "") {
    const end = rest.indexOf("\r\n\r\n");
    if (end === -1) break;
    const [line = "", ...fields] = rest.slice(0, end).split("\r\n");
    rest = rest.slice(end + 4);
    if (!/^[A-Za-z]+ [\x21-\x7e]+ HTTP\/1\.[01]$/.test(line)) faults.push(line);
    for (const field of fields) if (!/^[\w!#$%&'*+.^`|~-]+:(?: [^\r\n]*)?$/.test(field)) faults.push(field);
    const valuesOf = (name: RegExp) =>
      fields.filter((field) => name.test(field)).map((field) => field.replace(/^[^:]*: ?/, ""));
    const [length, coding] = [valuesOf(/^content.length\s*:/i), valuesOf(/^transfer.encoding\s*:/i)];
    if (valuesOf(/^host:/i).length !== 1) faults.push("not one host");
    if (fields.some((field) => /^evil:/i.test(field))) faults.push("an injected field");
    if (fields.some((field) => /^(?:content_length|transfer_encoding):/i.test(field)))
      faults.push("an alias of a framing field");
    if (line.endsWith("1.0") && coding.length > 0) faults.push("chunks in HTTP/1.0");
    if (length.length + coding.length > 1) faults.push("two framings");
    if (length.some((value) => !/^\d{1,19}$/.test(value))) faults.push(`length ${length.join()}`);
    if (coding.some((value) => value.toLowerCase() !== "chunked")) faults.push(`coding ${coding.join()}`);
    const body = coding.length > 0 ? chunkedSize(rest) : Number(length[0] ?? 0);
    if (Number.isNaN(body)) faults.push("malformed chunks");
    if (body === undefined || !(rest.length >= body)) break;
    rest = rest.slice(body);
    count += 1;
  }
  return { faults, count };
}

/** Returns the size of a chunked body with its framing; undefined while it is incomplete, NaN if it is malformed. */
function chunkedSize(text: string): number | undefined {
  let at = 0;
  for (;;) {
    const end = text.indexOf("\r\n", at);
    if (end === -1) return undefined;
    const size = text.slice(at, end);
    if (!/^[0-9a-f]{1,15}$/i.test(size)) return Number.NaN;
    at = end + 2;
    if (Number.parseInt(size, 16) === 0) break;
    at += Number.parseInt(size, 16) + 2;
  }
  const trailers = /^(?:[\w!#$%&'*+.^`|~-]+: ?[\t\x20-\x7e\x80-\xff]*\r\n)*\r\n/.exec(text.slice(at));
  return trailers === null ? undefined : at + trailers[0].length;
}

/** Returns response heads with each unusual length and coding alone and beside a plain one, and other unusual heads. */
export function strangeResponses(): readonly string[] {
  const lengthFields = lengths.map((value) => `Content-Length: ${value}`);
  const codingFields = codings.map((value) => `Transfer-Encoding: ${value}`);
  const heads = [
    ...lengthFields.flatMap((field) => [[field], [field, "Content-Length: 5"]]),
    ...codingFields.flatMap((field) => [[field], [field, "Content-Length: 5"], ["Transfer-Encoding: chunked", field]]),
    ...["Content-Length : 5", "Content-Length\x0b: 5", " Content-Length: 5", "X:\r\n Content-Length: 5"].map(
      (field) => [field],
    ),
  ].map((fields) => ["HTTP/1.1 200 OK", ...fields].join("\r\n"));
  const lines = [
    "HTTP/1.1 099 No",
    "HTTP/1.1 000 No",
    "HTTP/1.1 2000 No",
    "HTTP/1.1 20 No",
    "HTTP/1.1 -200 No",
    "HTTP/2.0 200 OK",
  ];
  return [...heads, ...lines.map((line) => `${line}\r\nContent-Length: 5`)].map((head) => `${head}\r\n\r\nhello`);
}

/** Returns what a strict client rejects in a response's head. */
export function faultsOfResponse(text: string): readonly string[] {
  const [line = "", ...fields] = (text.split("\r\n\r\n")[0] ?? "").split("\r\n");
  const valuesOf = (name: RegExp) =>
    fields.filter((field) => name.test(field)).map((field) => field.replace(/^[^:]*: ?/, ""));
  const [length, coding] = [valuesOf(/^content.length\s*:/i), valuesOf(/^transfer.encoding\s*:/i)];
  const faults = /^HTTP\/1\.[01] [2-5]\d\d /.test(line) ? [] : [line];
  if (length.length + coding.length > 1) faults.push("two framings");
  if (length.some((value) => !/^\d{1,19}$/.test(value))) faults.push(`length ${length.join()}`);
  if (coding.some((value) => value.toLowerCase() !== "chunked")) faults.push(`coding ${coding.join()}`);
  return faults;
}

/** A field of an HTTP/2 request, which may contain any byte. */
export type Http2Field = readonly [name: string, value: string];

const usual: Readonly<Record<string, string>> = {
  ":method": "POST",
  ":scheme": "https",
  ":authority": "raw.test",
  ":path": "/",
};

/** Returns the fields of HTTP/2 requests, which all have a body of five bytes. */
export function strangeHttp2Requests(): readonly (readonly Http2Field[])[] {
  const withUsual = (own: Readonly<Record<string, string>>) => Object.entries({ ...usual, ...own });
  const added: Http2Field[] = [
    ...lengths.map((value) => ["content-length", value] as const),
    ...codings.map((value) => ["transfer-encoding", value] as const),
    ...["connection", "keep-alive", "upgrade", "proxy-connection", "te"].map((name) => [name, "chunked"] as const),
    ...["a\r\nevil: 1", "a\nevil: 1", "a\revil: 1", "a\r\n\r\nGET /evil HTTP/1.1\r\nhost: raw.test"].map(
      (value) => ["x", value] as const,
    ),
    ...[
      "x\r\nevil",
      "x: y\r\nevil",
      "X-Upper",
      "x y",
      "",
      ":evil",
      "content-length\0",
      "content_length",
      "transfer_encoding",
    ].map((name) => [name, "5"] as const),
    ...([
      ["host", "other.test"],
      ["host", "raw.test\r\nevil: 1"],
      ["content-length", "5"],
      ["cookie", "a=b\r\nevil: 1"],
    ] as const),
  ];
  const replaced = [
    ...["GET /evil HTTP/1.1\r\nhost: raw.test\r\n\r\nGET", "P OST", "", "post\0"].map((value) => ({
      ":method": value,
    })),
    ...["/a b", "/\r\nevil: 1", "/ HTTP/1.1\r\nevil: 1\r\nx: y", "", "evil", "/\0", "*", "/#f"].map((value) => ({
      ":path": value,
    })),
    ...["raw.test\r\nevil: 1", "other.test", "", "raw.test@x", "raw.test, x"].map((value) => ({ ":authority": value })),
    ...["http\r\nevil: 1", "", "javascript"].map((value) => ({ ":scheme": value })),
  ];
  const twice = Object.entries(usual).map((field) => [...withUsual({}), field]);
  return [...added.map((field) => [...withUsual({}), field]), ...replaced.map(withUsual), ...twice];
}
