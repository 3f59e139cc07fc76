import { useState } from "react";
import { isSystemVariable } from "../../../contract/env.ts";
import { useAction } from "../../data/api.ts";
import { plural } from "../../data/format.ts";
import { FormDialog } from "../../ui/action-dialog.tsx";
import { Field, TextArea } from "../../ui/field.tsx";
import { Tag } from "../../ui/status.tsx";
import { Mono } from "../../ui/text.tsx";
import { parseEnvFile } from "./parse-env-file.ts";

interface PasteProps {
  readonly slug: string;
  readonly known: readonly string[];
  readonly onClose: () => void;
}

/** Sets all variables of a pasted .env. Shows what happens to each key before it sends anything. */
export function PasteDialog({ slug, known, onClose }: PasteProps) {
  const [text, setText] = useState("");
  const [done, setDone] = useState(0);
  const [error, setError] = useState<Error | null>(null);
  const [busy, setBusy] = useState(false);
  const set = useAction("env.set");
  const lines = parseEnvFile(text).map((line) => ({
    ...line,
    problem: line.problem ?? (isSystemVariable(line.key) ? "is set by the platform" : undefined),
  }));
  const usable = [
    ...new Map(lines.filter(({ problem }) => problem === undefined).map((line) => [line.key, line])).values(),
  ];
  const submit = async () => {
    setBusy(true);
    setError(null);
    try {
      // After a failure, the variables that are already stored are not sent again.
      for (const [index, { key, value }] of usable.entries()) {
        if (index < done) continue;
        await set.mutateAsync({ params: { slug, key }, body: { value } });
        setDone(index + 1);
      }
      onClose();
    } catch (fault) {
      setError(fault as Error);
      setBusy(false);
    }
  };
  return (
    <FormDialog
      title="Paste a .env"
      submit={usable.length === 0 ? "Save" : `Save ${plural(usable.length, "variable")}`}
      why={usable.length === 0 ? "Paste at least one KEY=value line." : undefined}
      busy={busy}
      error={error}
      onSubmit={() => void submit()}
      onClose={onClose}
    >
      <Field label="Content of the file" hint="It is read in this browser; only the values below are sent.">
        {(ids) => (
          <TextArea
            {...ids}
            rows={8}
            value={text}
            onChange={(event) => (setText(event.target.value), setDone(0))}
            placeholder={'STRIPE_KEY=sk_live_…\nMAIL_FROM="Shop <mail@shop.example>"'}
          />
        )}
      </Field>
      {lines.length > 0 && (
        <ul className="max-h-56 divide-y divide-line overflow-y-auto rounded-md border border-line text-sm">
          {lines.map(({ key, problem }, index) => (
            <li key={index} className="flex items-center justify-between gap-3 px-3 py-1.5">
              <Mono className="truncate">{key}</Mono>
              {problem === undefined ? (
                <Tag>{known.includes(key) ? "replaces" : "new"}</Tag>
              ) : (
                <span className="text-xs text-bad">{problem}</span>
              )}
            </li>
          ))}
        </ul>
      )}
    </FormDialog>
  );
}
