import { FitAddon } from "@xterm/addon-fit";
import { Terminal } from "@xterm/xterm";
import "@xterm/xterm/css/xterm.css";
import { useEffect, useRef } from "react";
import { useClient } from "../../data/api.ts";
import { adoptStyles } from "../../ui/adopt-styles.ts";

interface ScreenProps {
  readonly slug: string;
  readonly number: number;
  /** Called once, with a sentence on how the command ended. */
  readonly onEnd: (sentence: string) => void;
}

/** Shows a command's terminal, which is connected until the command ends or this is removed. */
export function TerminalScreen({ slug, number, onEnd }: ScreenProps) {
  const client = useClient();
  const place = useRef<HTMLDivElement>(null);
  const typed = useRef<(text: string) => void>(() => {});
  useEffect(() => {
    let leave: (() => void) | undefined = () => {};
    const open = () => {
      // The page was left while its font was loaded.
      if (place.current === null || leave === undefined) return;
      const screen = openScreen(place.current);
      typed.current = (text) => screen.input(text);
      const socket = client.tunnel("runs.terminal", { params: { slug, number: `${number}` } });
      const disconnect = connect(screen, socket, onEnd);
      leave = () => {
        disconnect();
        screen.dispose();
      };
    };
    // The width of a cell is measured once.
    void document.fonts.load(`13px ${font}`).finally(open);
    return () => {
      leave?.();
      leave = undefined;
    };
  }, [client, slug, number, onEnd]);
  return (
    <div className="flex flex-col gap-2">
      <div className="h-[clamp(16rem,calc(100dvh-13rem-var(--header)),60rem)] rounded-md bg-[#11181a] p-2 outline-offset-2 focus-within:outline-2 focus-within:outline-accent">
        <div ref={place} className="h-full overflow-hidden" />
      </div>
      <div role="group" aria-label="Keys" className="hidden gap-1 pointer-coarse:flex">
        {keys.map(([label, text]) => (
          <button
            key={label}
            type="button"
            className="target h-8 min-w-0 flex-1 rounded-md border border-line bg-raised text-sm"
            // The screen keeps the focus, and with it the phone's keyboard.
            onPointerDown={(event) => event.preventDefault()}
            onClick={() => typed.current(text)}
          >
            {label}
          </button>
        ))}
      </div>
    </div>
  );
}

// What keyboards of phones lack.
const keys = [
  ["Esc", "\u001b"],
  ["Tab", "\t"],
  ["Ctrl C", "\u0003"],
  ["Ctrl D", "\u0004"],
  ["↑", "\u001b[A"],
  ["↓", "\u001b[B"],
] as const;

const font = '"Geist Mono Variable"';

function openScreen(place: HTMLElement): Terminal {
  const screen = new Terminal({
    fontFamily: `${font}, ui-monospace, monospace`,
    fontSize: 13,
    cursorBlink: !matchMedia("(prefers-reduced-motion: reduce)").matches,
    minimumContrastRatio: 4.5,
    screenReaderMode: true,
    theme: { background: "#11181a", foreground: "#e4e9ea" },
  });
  const fit = new FitAddon();
  screen.loadAddon(fit);
  const endStyles = adoptStyles();
  screen.open(place);
  const observer = new ResizeObserver(() => fit.fit());
  observer.observe(place);
  screen.loadAddon({ activate: () => {}, dispose: () => (observer.disconnect(), endStyles()) });
  // Tab belongs to the command, so another key leaves the terminal.
  screen.attachCustomKeyEventHandler(({ ctrlKey, key }) => {
    if (ctrlKey && key === "m") screen.blur();
    return !(ctrlKey && key === "m");
  });
  fit.fit();
  screen.focus();
  return screen;
}

// A command may print faster than a page can draw; the rest is left out.
const mostPending = 8 * 1024 ** 2;
// A message of the tunnel has at most a mebibyte.
const pieceBytes = 256 * 1024;

/** Connects a terminal with the command at the other end. Returns a function that ends the connection, and with it the command. */
function connect(screen: Terminal, socket: WebSocket, onEnd: (sentence: string) => void): () => void {
  let [pending, isLeft] = [0, false];
  let end: string | undefined;
  const send = (bytes: Uint8Array<ArrayBuffer>) => {
    if (socket.readyState !== WebSocket.OPEN) return;
    for (let at = 0; at < bytes.length; at += pieceBytes) socket.send(bytes.subarray(at, at + pieceBytes));
  };
  const sendSize = () => {
    const { cols: columns, rows } = screen;
    if (socket.readyState === WebSocket.OPEN)
      socket.send(JSON.stringify({ type: "size", columns, rows, term: "xterm-256color" }));
  };
  socket.binaryType = "arraybuffer";
  socket.addEventListener("open", sendSize);
  screen.onResize(sendSize);
  screen.onData((text) => send(new TextEncoder().encode(text)));
  screen.onBinary((text) => send(Uint8Array.from(text, (each) => each.charCodeAt(0))));
  socket.addEventListener("message", ({ data }: MessageEvent<ArrayBuffer | string>) => {
    if (typeof data === "string") return void (end = endOf(data) ?? end);
    if (pending > mostPending) return;
    pending += data.byteLength;
    screen.write(new Uint8Array(data), () => void (pending -= data.byteLength));
  });
  socket.addEventListener("close", ({ reason }) => {
    screen.options.disableStdin = true;
    screen.options.cursorBlink = false;
    const why = reason === "" ? "The connection to the platform broke." : reason;
    if (!isLeft) onEnd(end ?? `${why} The command ended with it; start it again.`);
  });
  return () => {
    isLeft = true;
    socket.close(1000);
  };
}

/** Says how a command ended; undefined for other messages. */
function endOf(text: string): string | undefined {
  const { type, status, exit_code: code } = JSON.parse(text) as Record<string, unknown>;
  if (type !== "exit") return undefined;
  if (typeof code === "number") return `The command ended with exit code ${code}.`;
  const how = { timed_out: "took too long", cancelled: "was ended" }[String(status)];
  return `The command ${how ?? "was interrupted by a stop of the platform"}.`;
}
