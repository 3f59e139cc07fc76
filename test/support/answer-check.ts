import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";

/** A raw HTTP response. */
export interface WireAnswer {
  readonly status: number;
  readonly contentType: string | null;
  readonly text: string;
}

/** Describes how a response breaks the OpenAPI document; undefined when the document declares it. */
export type AnswerCheck = (method: string, path: string, answer: WireAnswer) => string | undefined;

// The document is Berth's own, and its fields are looked up by name.
// oxlint-disable-next-line typescript/no-explicit-any
type Json = any;

/**
 * Checks responses against an OpenAPI document: the operation must declare the status and the content type, and the body must have the
 * declared shape without further fields. A request that the document doesn't describe (unknown path, other method) must get an error of the
 * common form.
 */
export function createAnswerCheck(document: Json): AnswerCheck {
  const strict = closed(document) as Json;
  const ajv = new Ajv2020({ strict: false, allErrors: true });
  addFormats.default(ajv);
  ajv.addSchema({ ...strict, $id: "openapi" });
  const compiled = new Map<string, ValidateFunction>();
  const validate = (pointer: string, body: unknown) => {
    const check = compiled.get(pointer) ?? ajv.compile({ $ref: `openapi#${pointer}` });
    compiled.set(pointer, check);
    return check(body) ? undefined : ajv.errorsText(check.errors, { separator: "; " });
  };
  const operations = operationsOf(document);
  return (method, path, answer) => {
    const operation = operations.find((one) => one.method === method && one.pattern.test(path));
    if (operation === undefined) return undescribed(answer, validate);
    const found = operation.responses[answer.status];
    const place = found?.$ref?.slice(1) ?? [operation.pointer, "responses", answer.status].join("/");
    const declared = found?.$ref === undefined ? found : document.components.responses[place.split("/").at(-1) ?? ""];
    if (declared === undefined) return `the status ${answer.status} is not declared`;
    if (declared.content === undefined)
      return answer.text === "" ? undefined : "the response has a body, but the operation declares none";
    const type = (answer.contentType ?? "none").split(";")[0] as string;
    if (declared.content[type] === undefined) return `the content type ${type} is not declared`;
    if (type !== "application/json") return undefined;
    return validate([place, "content", escape(type), "schema"].join("/"), JSON.parse(answer.text));
  };
}

/** Maps a request to its operation's name; undefined when the document has no such operation. */
export function operationNamer(document: Json): (method: string, path: string) => string | undefined {
  const operations = operationsOf(document);
  return (method, path) => operations.find((one) => one.method === method && one.pattern.test(path))?.id;
}

interface Operation {
  readonly id: string;
  readonly method: string;
  readonly pattern: RegExp;
  readonly pointer: string;
  readonly responses: Readonly<Record<string, { $ref?: string; content?: Record<string, unknown> }>>;
}

function operationsOf(document: Json): readonly Operation[] {
  const paths = Object.entries(document.paths as Record<string, Record<string, Json>>);
  const all = paths.flatMap(([template, methods]) =>
    Object.entries(methods).map(([method, { operationId, responses }]) => {
      const pattern = new RegExp(`^${template.replaceAll(".", "\\.").replaceAll(/\{\w+\}/g, "[^/]*")}(?:\\?.*)?$`);
      return {
        id: operationId,
        method: method.toUpperCase(),
        pattern,
        pointer: `/paths/${escape(template)}/${method}`,
        responses,
      };
    }),
  );
  // As in the server, a fixed segment matches before a parameter.
  return all.toSorted((one, other) => one.pointer.split("{").length - other.pointer.split("{").length);
}

function undescribed({ status, text }: WireAnswer, validate: (pointer: string, body: unknown) => string | undefined) {
  if (![400, 404, 405, 413].includes(status))
    return `the status ${status} for a request that the document does not describe`;
  return validate("/components/schemas/Error", JSON.parse(text));
}

/** Forbids undeclared fields in every object schema that does not set additionalProperties itself. */
function closed(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(closed);
  if (typeof schema !== "object" || schema === null) return schema;
  const fields = Object.fromEntries(Object.entries(schema).map(([name, value]) => [name, closed(value)]));
  const isOpen =
    fields["type"] === "object" && fields["properties"] !== undefined && !("additionalProperties" in fields);
  return isOpen ? { ...fields, additionalProperties: false } : fields;
}

function escape(part: string): string {
  return part.replaceAll("~", "~0").replaceAll("/", "~1").replaceAll("{", "%7B").replaceAll("}", "%7D");
}
