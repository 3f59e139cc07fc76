import { Check, Copy } from "lucide-react";
import { useEffect, useState } from "react";
import { visible } from "../data/format.ts";
import { IconButton } from "./button.tsx";
import { Mono } from "./text.tsx";

/** Copies a text. The icon shows when that has worked. */
export function CopyButton({ text, label = "Copy" }: { readonly text: string; readonly label?: string }) {
  const [done, setDone] = useState(false);
  useEffect(() => {
    if (!done) return;
    const timer = setTimeout(() => setDone(false), 1500);
    return () => clearTimeout(timer);
  }, [done]);
  return (
    <>
      <IconButton label={label} onClick={() => void copy(text).then(() => setDone(true))}>
        {done ? <Check size={15} className="text-ok" /> : <Copy size={15} />}
      </IconButton>
      <span role="status" className="sr-only">
        {done ? "Copied" : ""}
      </span>
    </>
  );
}

// Browsers offer navigator.clipboard only over HTTPS and on localhost.
async function copy(text: string): Promise<void> {
  if (navigator.clipboard !== undefined) return navigator.clipboard.writeText(text);
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}

/** A command to paste into a terminal, or another text to paste. */
export function Command({
  children,
  label = "Copy the command",
}: {
  readonly children: string;
  readonly label?: string;
}) {
  return (
    <div className="flex min-w-0 items-center gap-1 rounded-md border border-line bg-panel pl-3">
      <code tabIndex={0} className="min-w-0 flex-1 overflow-x-auto py-2 text-sm wrap-anywhere whitespace-pre-wrap">
        {visible(children)}
      </code>
      <CopyButton text={children} label={label} />
    </div>
  );
}

export function Copied({ text, label }: { readonly text: string; readonly label: string }) {
  return (
    <span className="flex items-center gap-1">
      <Mono className="min-w-0 wrap-anywhere">{text}</Mono>
      <CopyButton text={text} label={label} />
    </span>
  );
}
