import fc from "fast-check";

// oxlint-disable-next-line typescript/no-explicit-any
type Json = any;

/** Generates values that a JSON schema allows, approximately: it respects lengths and patterns where that is cheap. */
export function schemaArbitrary(schema: Json, document: Json, depth = 0): fc.Arbitrary<unknown> {
  const inner = (one: Json) => schemaArbitrary(one, document, depth + 1);
  if (schema === undefined || schema === true || depth > 8) return fc.jsonValue({ maxDepth: 2 });
  if (schema.$ref !== undefined) return inner(document.components.schemas[schema.$ref.split("/").at(-1)]);
  if (schema.const !== undefined) return fc.constant(schema.const);
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum);
  const either = schema.anyOf ?? schema.oneOf;
  if (either !== undefined) return fc.oneof(...either.map(inner));
  if (Array.isArray(schema.type)) return fc.oneof(...schema.type.map((type: string) => inner({ ...schema, type })));
  return byType[schema.type as string]?.(schema, inner) ?? fc.jsonValue({ maxDepth: 2 });
}

type Inner = (schema: Json) => fc.Arbitrary<unknown>;

const byType: Readonly<Record<string, (schema: Json, inner: Inner) => fc.Arbitrary<unknown>>> = {
  null: () => fc.constant(null),
  boolean: () => fc.boolean(),
  integer: ({ minimum, maximum }) =>
    fc.integer({
      min: Math.max(minimum ?? -(2 ** 31), -(2 ** 31)),
      max: Math.min(maximum ?? 2 ** 31 - 1, 2 ** 31 - 1),
    }),
  number: () => fc.double({ noNaN: true, noDefaultInfinity: true }),
  string: text,
  array: ({ items, minItems }, inner) => fc.array(inner(items), { minLength: minItems ?? 0, maxLength: 5 }),
  object: objectOf,
};

function text({ pattern, minLength, maxLength }: Json): fc.Arbitrary<string> {
  const plain = fc.string({ minLength: minLength ?? 0, maxLength: Math.min(maxLength ?? 40, 200), unit: "binary" });
  const wellFormed = plain.map((value) => value.toWellFormed());
  if (pattern === undefined) return wellFormed;
  try {
    return fc.oneof(
      { weight: 4, arbitrary: fc.stringMatching(new RegExp(pattern, "u")) },
      { weight: 1, arbitrary: wellFormed },
    );
  } catch {
    // fast-check does not support lookarounds.
    return wellFormed;
  }
}

function objectOf({ properties = {}, required = [], additionalProperties }: Json, inner: Inner): fc.Arbitrary<unknown> {
  const fields = Object.fromEntries(
    Object.entries(properties as Record<string, Json>).map(([name, schema]) => [name, inner(schema)]),
  );
  const known = fc.record(fields, { requiredKeys: required });
  if (additionalProperties !== true && typeof additionalProperties !== "object") return known;
  const names = fc.oneof(
    fc.constantFrom("id", "name", "label", "price", "doc"),
    fc.string({ maxLength: 20, unit: "binary" }).map((name) => name.toWellFormed()),
  );
  const more = fc.dictionary(names, fc.jsonValue({ maxDepth: 2 }), { maxKeys: 4 });
  return fc.tuple(known, more).map(([one, other]) => ({ ...other, ...(one as object) }));
}
