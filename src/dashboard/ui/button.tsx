import { LoaderCircle, Check, Copy } from "lucide-react";
import { useEffect, useState, type ComponentProps, type ReactNode } from "react";
import type { RouteName } from "../../contract/routes.ts";
import { visible } from "../data/format.ts";
import { useMe, whyNot } from "../data/api.ts";
import { useOpenDialog } from "./dialogs.tsx";
import { Mono } from "./text.tsx";

const looks = {
  primary: "bg-accent text-on-accent hover:bg-accent-hover",
  plain: "border border-line bg-raised text-text hover:bg-hover",
  quiet: "text-muted hover:bg-hover hover:text-text",
  danger: "border border-bad/40 bg-raised text-bad hover:bg-bad/10",
};

// A button that can't be used is grey, not faded: faded text would be too pale to read.
const off = "cursor-not-allowed border border-line bg-panel text-faint";
const offQuiet = "cursor-not-allowed text-faint";

const shape =
  "target relative inline-flex h-8 shrink-0 items-center justify-center gap-1.5 rounded-md px-3 text-sm font-medium whitespace-nowrap transition-colors select-none";

/** Returns the classes of a button, for a link that looks like one. */
export function buttonLook(look: keyof typeof looks): string {
  return `${shape} ${looks[look]}`;
}

interface ButtonProps extends Omit<ComponentProps<"button">, "disabled"> {
  readonly look?: keyof typeof looks;
  readonly busy?: boolean;
  /** Why the button can't be used: shown on hover, on touch screens after a tap, and read out. The button stays focusable. */
  readonly why?: string | undefined;
  /** The route that the button calls or whose dialog it opens: without the rights for it, the button can't be used. */
  readonly row?: RouteName;
  readonly icon?: ReactNode;
}

/** A button that keeps its label and width while it is busy, and ignores presses meanwhile. */
export function Button({
  look = "plain",
  busy = false,
  why: ownReason,
  row,
  icon,
  children,
  onClick,
  className = "",
  ...rest
}: ButtonProps) {
  const why = useReason(ownReason, row);
  const isOff = busy || why !== undefined;
  const [isTapped, setTapped] = useState(false);
  useEffect(() => {
    if (!isTapped) return undefined;
    const timer = setTimeout(() => setTapped(false), reasonMs);
    return () => clearTimeout(timer);
  }, [isTapped]);
  return (
    <button
      type="button"
      {...rest}
      {...(isOff ? { "aria-disabled": true } : {})}
      {...(why === undefined ? {} : { title: why })}
      onClick={(event) => {
        if (isOff) event.preventDefault();
        else onClick?.(event);
        setTapped(why !== undefined);
      }}
      className={`${shape} ${why === undefined ? looks[look] : look === "quiet" ? offQuiet : off} ${className}`}
    >
      <span className={`inline-flex items-center gap-1.5 ${busy ? "opacity-0" : ""}`}>
        {icon}
        {children}
      </span>
      {busy && <LoaderCircle aria-hidden size={15} className="absolute animate-spin" />}
      {why !== undefined && <span className="sr-only">{why}</span>}
      {why !== undefined && isTapped && <Reason>{why}</Reason>}
    </button>
  );
}

/** Returns why a button can't be used: its own reason, else the missing right. Only the page's own buttons call routes of a session. */
function useReason(own: string | undefined, row: RouteName | undefined): string | undefined {
  return own ?? (row === undefined ? undefined : whyNot(useMe(), row));
}

const reasonMs = 6000;

/** Shows at the bottom of a touch screen why a button can't be used. */
function Reason({ children }: { readonly children: string }) {
  return (
    <span
      aria-hidden
      data-reason
      className="fixed inset-x-4 bottom-4 z-20 mx-auto hidden max-w-md rounded-md border border-line bg-raised px-4 py-3 text-left font-normal whitespace-normal text-text shadow-float pointer-coarse:block"
    >
      {children}
    </span>
  );
}

type IconButtonProps = Omit<ComponentProps<"button">, "title"> &
  Pick<ButtonProps, "why" | "row"> & { readonly label: string };

/** A button with an icon. The label is for screen readers and appears on hover. */
export function IconButton({ label, why: own, row, children, onClick, className = "", ...rest }: IconButtonProps) {
  const why = useReason(own, row);
  const name = visible(label);
  return (
    <button
      type="button"
      aria-label={name}
      {...rest}
      {...(why === undefined ? {} : { "aria-disabled": true })}
      title={why ?? name}
      onClick={(event) => (why === undefined ? onClick?.(event) : event.preventDefault())}
      className={`inline-flex size-8 shrink-0 items-center justify-center rounded-md transition-colors max-sm:size-11 ${why === undefined ? "text-muted hover:bg-hover hover:text-text" : offQuiet} ${className}`}
    >
      {children}
    </button>
  );
}

interface Opens {
  readonly dialog: ReactNode;
}

export function DialogButton({ dialog, ...button }: Omit<ComponentProps<typeof Button>, "onClick"> & Opens) {
  const openDialog = useOpenDialog();
  return <Button {...button} onClick={() => openDialog(dialog)} />;
}

export function DialogIconButton({ dialog, ...button }: Omit<IconButtonProps, "onClick"> & Opens) {
  const openDialog = useOpenDialog();
  return <IconButton {...button} onClick={() => openDialog(dialog)} />;
}

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
