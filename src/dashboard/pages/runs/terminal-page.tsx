import { useCallback, useState } from "react";
import { limits } from "../../../contract/limits.ts";
import { useAction, useProject, useSlug, useWhyNot } from "../../data/api.ts";
import { textOf, TextField } from "../../ui/field.tsx";
import { Button } from "../../ui/button.tsx";
import { Form } from "../../ui/form.tsx";
import { Page } from "../../ui/page.tsx";
import { TerminalScreen } from "./terminal-screen.tsx";

const shell = "command -v bash >/dev/null && exec bash; exec sh";
// As with `berth run -it`.
const timeoutSeconds = 14_400;

/** The page of a terminal: a shell, or another command, beside the running application. */
export function TerminalPage() {
  const slug = useSlug();
  const [number, setNumber] = useState<number>();
  const [end, setEnd] = useState<string>();
  const onEnd = useCallback((sentence: string) => setEnd(sentence), []);
  const isOpen = number !== undefined && end === undefined;
  const start = (next?: number) => {
    setEnd(undefined);
    setNumber(next);
  };
  return (
    <Page
      title="Terminal"
      lead={
        !isOpen &&
        "A shell, or another command, in the image of the active deployment, with its variables, database and storage. It runs beside the application, and ends when you leave this page."
      }
      actions={isOpen && <Button onClick={() => start()}>End</Button>}
    >
      {!isOpen && <Start slug={slug} onStart={start} />}
      <p role="status" className="text-sm text-muted">
        {end ?? (isOpen ? "Ctrl M leaves the terminal, so that Tab moves on." : "")}
      </p>
      {number !== undefined && <TerminalScreen key={number} slug={slug} number={number} onEnd={onEnd} />}
    </Page>
  );
}

interface StartProps {
  readonly slug: string;
  readonly onStart: (number: number) => void;
}

function Start({ slug, onStart }: StartProps) {
  const { data: project } = useProject();
  const mayNot = useWhyNot("runs.create");
  const create = useAction("runs.create");
  const isDeployed = project?.active_deployment !== null;
  return (
    <Form
      inline
      submit="Start"
      why={mayNot ?? (isDeployed ? undefined : "Deploy a version first.")}
      onSubmit={(form) => {
        const command = textOf(form, "command").trim() || shell;
        const body = { command, terminal: true, timeout_seconds: timeoutSeconds };
        return create.mutateAsync({ params: { slug }, body }).then(({ run }) => onStart(run.number));
      }}
    >
      <TextField
        name="command"
        label="Command"
        hint="Empty: bash, or sh where the image has none."
        mono
        maxLength={limits.command_characters}
        autoComplete="off"
        autoCapitalize="none"
        spellCheck={false}
        placeholder="bash"
      />
    </Form>
  );
}
