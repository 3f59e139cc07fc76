import { useState } from "react";
import { plural } from "../../data/format.ts";
import { ActionDialog } from "../../ui/action-dialog.tsx";
import { Field, TextArea } from "../../ui/field.tsx";

interface Cron {
  readonly path?: string;
  readonly command?: string;
  readonly schedule: string;
}

/** Imports the `crons` of a pasted vercel.json: all of them or none. */
export function ImportDialog({ slug }: { readonly slug: string }) {
  const [text, setText] = useState("");
  const crons = cronsOf(text);
  return (
    <ActionDialog
      row="cron.import"
      title="Import jobs"
      submit={crons === undefined ? "Import" : `Import ${plural(crons.length, "job")}`}
      why={crons === undefined ? "Paste a vercel.json, or its list of crons." : undefined}
      input={() => ({ params: { slug }, body: { crons: crons ?? [] } })}
    >
      <Field
        name="crons"
        label="vercel.json, or its list of crons"
        hint="Importing the same file again changes nothing."
      >
        {(ids) => (
          <TextArea
            {...ids}
            rows={9}
            value={text}
            onChange={(event) => setText(event.target.value)}
            placeholder={'{ "crons": [{ "path": "/jobs/clean-up", "schedule": "0 3 * * *" }] }'}
          />
        )}
      </Field>
    </ActionDialog>
  );
}

function cronsOf(text: string): Cron[] | undefined {
  try {
    const document = JSON.parse(text) as unknown;
    const list = Array.isArray(document) ? (document as unknown[]) : (document as { readonly crons?: unknown }).crons;
    return Array.isArray(list) && list.length > 0
      ? (list as Cron[]).map(({ path, command, schedule }) => ({
          schedule,
          ...(command === undefined ? { path: path ?? "" } : { command }),
        }))
      : undefined;
  } catch {
    return undefined;
  }
}
