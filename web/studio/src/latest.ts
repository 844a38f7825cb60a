/** Runs the newest task alone: an older one is called off, and nothing runs while another is asked for. */
export class Latest {
  private timer: number | undefined;
  private running: AbortController | undefined;

  after(milliseconds: number, task: (signal: AbortSignal) => Promise<void>): void {
    this.stop();
    this.timer = window.setTimeout(() => {
      const running = new AbortController();
      this.running = running;
      task(running.signal).catch((error: unknown) => {
        if (!running.signal.aborted) throw error;
      });
    }, milliseconds);
  }

  stop(): void {
    window.clearTimeout(this.timer);
    this.running?.abort();
    this.running = undefined;
  }
}
