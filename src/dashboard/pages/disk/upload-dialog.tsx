import { useState } from "react";
import type { Answer } from "../../../contract/client.ts";
import { limits } from "../../../contract/limits.ts";
import { useAction, useWhyNot } from "../../data/api.ts";
import { fetchWithProgress } from "../../data/fetch-with-progress.ts";
import { bytes } from "../../data/format.ts";
import { FormDialog } from "../../ui/action-dialog.tsx";
import { Field, Input } from "../../ui/field.tsx";
import { Mono } from "../../ui/text.tsx";
import { pathIn } from "./path-in.ts";
import { InPlace, Replace } from "./restore-path.tsx";

interface UploadProps {
  readonly slug: string;
  readonly folder: string | undefined;
}

/** Sends files into a folder of the storage folder, one after the other. What was sent before a refusal is not sent again. */
export function UploadDialog({ slug, folder }: UploadProps) {
  const write = useAction("disk.write");
  const [written] = useState(() => new Map<string, Answer<"disk.write">>());
  const [isDone, setDone] = useState(false);
  const [sending, setSending] = useState<{ readonly path: string; readonly share: number }>();
  const send = async (form: FormData) => {
    const replace = form.has("replace");
    for (const file of form.getAll("file") as File[]) {
      const path = pathIn(folder, file.name);
      if (written.has(path)) continue;
      if (file.size > limits.stored_upload_bytes)
        throw new Error(`${file.name} has ${bytes(file.size)}. A file may have ${bytes(limits.stored_upload_bytes)}.`);
      const show = (sent: number) => setSending({ path, share: sent / Math.max(1, file.size) });
      show(0);
      const query = { path, size_bytes: file.size, replace };
      const sent = write.mutateAsync({ params: { slug }, query, upload: file, fetch: fetchWithProgress(show) });
      written.set(path, await sent.finally(() => setSending(undefined)));
    }
    setDone(true);
  };
  if (isDone) return <InPlace title="Uploaded" slug={slug} of={[...written.values()]} />;
  return (
    <FormDialog
      title={`Upload to $STORAGE_DIR${folder === undefined ? "" : `/${folder}`}`}
      submit="Upload"
      why={useWhyNot("disk.write")}
      onSubmit={send}
    >
      <Field
        label="Files"
        name="file"
        hint="If a name is there already, nothing happens unless you allow that it is replaced."
      >
        {(ids) => <Input {...ids} type="file" multiple required className="py-1" />}
      </Field>
      <Replace />
      {sending !== undefined && (
        <p className="flex flex-col gap-1.5 text-sm text-muted">
          <Mono className="wrap-anywhere">{sending.path}</Mono>
          <progress value={sending.share} aria-label={`Sent of ${sending.path}`} className="h-1.5 w-full" />
        </p>
      )}
    </FormDialog>
  );
}
