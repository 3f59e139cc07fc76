import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";

/** An answer as it came over the wire. */
export interface WireAnswer {
  readonly status: number;
  readonly contentType: string | null;
  readonly text: string;
}

/** What is wrong with an answer to a request; undefined when the description declares it so. */
export type AnswerCheck = (method: string, path: string, answer: WireAnswer) => string | undefined;

// A document of ours; what it holds is looked up by name.
// oxlint-disable-next-line typescript/no-explicit-any
type Json = any;

/**
 * Checks answers against an OpenAPI document: is the status declared for the operation, is the content type, has the body the declared
 * shape, with no field beyond it. What the document doesn't describe (an unknown path, another method) must be an error of the common form.
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
    const declared = operation.responses[answer.status];
    if (declared === undefined) return `the status ${answer.status} is not declared`;
    if (declared.content === undefined) return answer.text === "" ? undefined : "a body where none is declared";
    const type = (answer.contentType ?? "none").split(";")[0] as string;
    if (declared.content[type] === undefined) return `the content type ${type} is not declared`;
    if (type !== "application/json") return undefined;
    const pointer = [operation.pointer, "responses", answer.status, "content", escape(type), "schema"].join("/");
    return validate(pointer, JSON.parse(answer.text));
  };
}

/** The name of the operation behind a request; undefined when there is none. */
export function operationNamer(document: Json): (method: string, path: string) => string | undefined {
  const operations = operationsOf(document);
  return (method, path) => operations.find((one) => one.method === method && one.pattern.test(path))?.id;
}

interface Operation {
  readonly id: string;
  readonly method: string;
  readonly pattern: RegExp;
  readonly pointer: string;
  readonly responses: Readonly<Record<string, { content?: Record<string, unknown> }>>;
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
  // A fixed segment goes before a parameter, as in the server.
  return all.toSorted((one, other) => one.pointer.split("{").length - other.pointer.split("{").length);
}

function undescribed({ status, text }: WireAnswer, validate: (pointer: string, body: unknown) => string | undefined) {
  if (![400, 404, 405, 413].includes(status)) return `the status ${status} for what is not described`;
  return validate("/components/schemas/Error", JSON.parse(text));
}

/** Every object with declared fields has those alone, unless it says otherwise. */
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
