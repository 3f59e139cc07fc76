import { createRemoval } from "../../ui/action-dialog.tsx";
import type { Job } from "./job.ts";

export const jobRemoval = (slug: string) =>
  createRemoval({
    row: "cron.delete",
    title: "Delete a job",
    verb: "Delete",
    nameOf: ({ name }: Pick<Job, "name">) => name,
    input: ({ name }) => ({ params: { slug, name } }),
    warning: "This deletes the job and the record of its runs.",
  });

export const runJob = (slug: string, { name }: Pick<Job, "name">) =>
  ({ row: "cron.run", label: "Run now", input: { params: { slug, name } } }) as const;
