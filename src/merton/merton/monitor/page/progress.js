// The band of the experiment, beside STOP: what runs, how far it is, how long it takes.

const byId = (id) => document.getElementById(id);
const setText = (id, text) => { if (byId(id).textContent !== text) byId(id).textContent = text; };

// A duration [s] in words of one or two units.
export function duration(seconds) {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return "";
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.round(whole / 60)} min`;
  return `${Math.floor(whole / 3600)} h ${Math.round((whole % 3600) / 60)} min`;
}

const ENDED = { finished: "finished", cancelled: "cancelled", failed: "failed" };

// `content`: of ExperimentProgress, or undefined; `since`: seconds since it arrived; `line`: as for the safety band.
export function progress(content, since, line) {
  const bar = byId("progress-bar");
  bar.hidden = true;
  if (line !== "live") return said("what runs is not known", "");
  if (!content) return said("no experiment_node is seen", "");
  const trials = `${content.completed} of ${content.total} trials`;
  if (content.state === "running") {
    bar.hidden = content.total < 2;
    [bar.max, bar.value] = [Math.max(1, content.total), content.completed];
    if (!content.trial_id) return said(`${content.experiment || "an experiment"} begins`, content.stage);
    const number = Math.min(content.completed + 1, Math.max(1, content.total));
    const distortion = content.level ? `${content.distortion} ${content.level}` : "undistorted";
    const left = content.remaining_s === null ? "" : ` · ${duration(content.remaining_s - since)} left`;
    const step = content.step ? `, step ${content.step}` : "";
    return said(
      `trial ${number} of ${content.total} · ${content.agent} · ${content.task} · ${distortion}${left}`,
      [content.experiment, `${content.stage}${step}`, `${duration(content.elapsed_s + since)} elapsed`, content.next_trial_id && `next ${content.next_trial_id}`]
        .filter(Boolean).join(" · "),
    );
  }
  const last = ENDED[content.state];
  if (!last) return said("idle: no experiment runs", "");
  return said(`idle: ${content.experiment || "the last trial"} ${last}`,
    [content.total > 1 ? trials : "", content.elapsed_s ? duration(content.elapsed_s) : "", content.why].filter(Boolean).join(" · "));
}

function said(now, more) {
  setText("progress-now", now);
  setText("progress-more", more);
}

const RECORDING = {
  off: (one) => (one.file ? `off; ${one.file} has ${one.megabytes} MB` : "off"),
  on: (one) => `recording: ${one.megabytes} MB in ${one.file}`,
  ending: (one) => `writing the end of ${one.file}`,
  failed: (one) => `the recorder ended by itself: see the output of merton monitor; ${one.file} has ${one.megabytes} MB`,
  graph: () => "the graph records itself",
};

export function recording(content) {
  const on = content.state === "on";
  setText("recording", RECORDING[content.state](content));
  byId("recording").className = on || content.state === "graph" ? "wrong" : "";
  const button = byId("record");
  button.textContent = on ? "End the recording" : "Record";
  button.dataset.wanted = on ? "" : "yes";
  button.disabled = content.state === "graph" || content.state === "ending";
}
