import { useState } from "react";
import { useAction } from "../../data/api.ts";
import { plural } from "../../data/format.ts";
import { FormDialog } from "../../ui/dialog.tsx";
import { Field, TextArea } from "../../ui/field.tsx";

interface Cron {
  readonly path: string;
  readonly schedule: string;
}

/** The `crons` of a vercel.json, pasted: all of them or none. */
export function ImportDialog({ slug, onClose }: { readonly slug: string; readonly onClose: () => void }) {
  const [text, setText] = useState("");
  const importing = useAction("cron.import");
  const crons = cronsOf(text);
  return (
    <FormDialog
      title="Import jobs"
      submit={crons === undefined ? "Import" : `Import ${plural(crons.length, "job")}`}
      why={crons === undefined ? "Paste a vercel.json, or its list of crons." : undefined}
      busy={importing.isPending}
      error={importing.error}
      onSubmit={() => importing.mutate({ params: { slug }, body: { crons: crons ?? [] } }, { onSuccess: onClose })}
      onClose={onClose}
    >
      <Field label="vercel.json, or its list of crons" hint="The same file twice changes nothing.">
        {(ids) => (
          <TextArea
            {...ids}
            rows={9}
            autoFocus
            value={text}
            onChange={(event) => setText(event.target.value)}
            placeholder={'{ "crons": [{ "path": "/jobs/clean-up", "schedule": "0 3 * * *" }] }'}
          />
        )}
      </Field>
    </FormDialog>
  );
}

function cronsOf(text: string): Cron[] | undefined {
  try {
    const document = JSON.parse(text) as unknown;
    const list = Array.isArray(document) ? (document as unknown[]) : (document as { readonly crons?: unknown }).crons;
    return Array.isArray(list) && list.length > 0
      ? (list as Cron[]).map(({ path, schedule }) => ({ path, schedule }))
      : undefined;
  } catch {
    return undefined;
  }
}
