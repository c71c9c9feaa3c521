// A walk in time: at every stop the agent turns to where it goes next, then it walks there.

const PACE = 1.25;              // metres a second
const TURNING = (110 * Math.PI) / 180; // radians a second
const SLIDE = 1.8;              // seconds a stop is shown to those who want no motion
const BREATH = 0.35;            // seconds at a stop before it goes on
export const EYE = 1.5;         // eyes above the floor

export const wrapped = (angle) => Math.atan2(Math.sin(angle), Math.cos(angle));
const smooth = (t) => t * t * (3 - 2 * t);

export class Timeline {
  // `path`: stops with position [x, y, z] and heading in radians (0 is north, to the right is positive). `look`: heading and pitch
  // of the view in which a walk ends.
  constructor(path, look = null) {
    this.stops = path.map((stop) => stop.position);
    this.parts = [];
    // When each stop is reached, and when its view has settled.
    this.times = [0];
    let at = 0, facing = path[0]?.heading ?? 0;
    this.facing = [facing];
    const part = (seconds, rest) => { this.parts.push({ from: at, to: at + seconds, ...rest }); at += seconds; };
    for (let i = 0; i + 1 < path.length; i++) {
      const [a, b] = [this.stops[i], this.stops[i + 1]];
      const [dx, dy, dz] = [b[0] - a[0], b[1] - a[1], b[2] - a[2]];
      const flat = Math.hypot(dx, dy);
      const ahead = flat > 0.05 ? Math.atan2(dx, dy) : facing;
      const turn = wrapped(ahead - facing);
      const tilt = Math.atan2(dz, Math.max(flat, 0.3)) * 0.55;
      part(BREATH, { kind: "stand", i, a, b: a, heading: facing, turn: 0, tilt: 0, rise: 0 });
      if (Math.abs(turn) > 0.01) part(Math.max(0.35, Math.abs(turn) / TURNING), { kind: "turn", i, a, b: a, heading: facing, turn, tilt: 0, rise: tilt });
      part(Math.max(0.5, Math.hypot(flat, dz) / PACE), { kind: "walk", i, a, b, heading: ahead, turn: 0, tilt: Math.abs(turn) > 0.01 ? tilt : 0, rise: tilt });
      facing = ahead;
      this.facing.push(facing);
      this.times.push(at);
    }
    const end = { i: Math.max(path.length - 1, 0), a: this.stops.at(-1), b: this.stops.at(-1), tilt: 0, rise: 0 };
    // It arrives, and then looks at what it has stopped at.
    const turn = look && path.length > 1 ? wrapped(look[0] - facing) : 0;
    const gaze = look && path.length > 1 ? look[1] : 0;
    if (turn !== 0 || gaze !== 0) {
      part(BREATH, { kind: "stand", ...end, heading: facing, turn: 0, gaze: [0, 0] });
      part(Math.max(0.6, Math.abs(turn) / TURNING), { kind: "look", ...end, heading: facing, turn, gaze: [0, gaze] });
    }
    this.settled = [...this.times.slice(0, -1), at];
    part(0.8, { kind: "stand", ...end, heading: facing + turn, turn: 0, gaze: [gaze, gaze] });
    this.duration = at;
  }

  // Where the agent is at a time: writes x, y, z, heading, pitch, the stop it was at last, and the share of the way to the next.
  at(time, out) {
    const t = Math.min(Math.max(time, 0), this.duration);
    let k = 0;
    while (k + 1 < this.parts.length && this.parts[k].to <= t) k++;
    const part = this.parts[k];
    const share = smooth(Math.min(1, Math.max(0, (t - part.from) / (part.to - part.from))));
    // Walking begins and ends gently, but not from a standstill.
    const way = part.kind === "walk" ? share * 0.35 + 0.65 * Math.min(1, (t - part.from) / (part.to - part.from)) : 0;
    out.x = part.a[0] + (part.b[0] - part.a[0]) * way;
    out.y = part.a[1] + (part.b[1] - part.a[1]) * way;
    out.z = part.a[2] + (part.b[2] - part.a[2]) * way;
    out.heading = part.heading + part.turn * share;
    // Looking along the stairs while on them, level again where they end.
    const end = part.kind === "walk" ? Math.max(0, (way - 0.8) / 0.2) : 0;
    out.pitch = part.gaze ? part.gaze[0] + (part.gaze[1] - part.gaze[0]) * share : part.kind === "stand" ? 0 : part.kind === "turn" ? part.rise * share : part.rise * (part.tilt ? 1 : smooth(Math.min(1, way * 5))) * (1 - smooth(end));
    out.stop = this.stopAt(t);
    out.walking = part.kind === "walk";
    out.way = way;
    return out;
  }

  // The stop that a time belongs to: the last one reached.
  stopAt(time) {
    let stop = 0;
    while (stop + 1 < this.times.length && this.times[stop + 1] <= time + 0.01) stop++;
    return stop;
  }
}

// Lets time pass: plays, pauses, glides to a stop. Calls `show(time)` whenever there is something new to see.
export class Player {
  #frame = null;
  #last = 0;
  #goal = null;
  #shown = 0;

  constructor(timeline, { still, show, changed }) {
    Object.assign(this, { timeline, still, show, changed });
    this.time = 0;
    this.playing = false;
  }

  play() {
    if (this.over) this.time = 0;
    this.#goal = null;
    this.#shown = 0;
    this.#set(true);
  }

  pause() {
    this.#goal = null;
    this.#set(false);
  }

  seek(time) {
    this.#goal = null;
    this.#to(time);
    this.#set(false);
  }

  // On to the next stop (1) or back to the one before (-1): quickly, or at once for those who want no motion.
  step(by) {
    const base = this.#goal ?? this.time;
    const { times, settled } = this.timeline;
    const here = this.timeline.stopAt(base);
    const onStop = here === times.length - 1 || Math.abs(times[here] - base) < 0.02;
    const target = by > 0 ? here + 1 : onStop ? here - 1 : here;
    this.glide(settled[Math.min(Math.max(target, 0), settled.length - 1)]);
  }

  glide(time) {
    if (this.still()) return this.seek(time);
    this.playing = false;
    this.#goal = time;
    // Whatever the distance, it takes no more than about a second.
    this.speed = Math.max(Math.abs(time - this.time) / 0.9, 2);
    this.changed();
    this.#run();
  }

  // Where a glide leads to, else where time stands.
  get aim() {
    return this.#goal ?? this.time;
  }

  // Whether the last view is reached.
  get over() {
    return this.time >= this.timeline.settled.at(-1) - 0.01;
  }

  get gliding() {
    return this.#goal !== null;
  }

  end() {
    cancelAnimationFrame(this.#frame);
    this.#frame = null;
  }

  #set(playing) {
    this.playing = playing;
    this.changed();
    if (playing) this.#run();
  }

  #to(time) {
    this.time = Math.min(Math.max(time, 0), this.timeline.duration);
    this.show(this.time);
  }

  #run() {
    if (this.#frame !== null) return;
    this.#last = performance.now();
    const tick = (now) => {
      this.#frame = null;
      // A tab that was in the background goes on where it was.
      const passed = Math.min((now - this.#last) / 1000, 0.1);
      this.#last = now;
      if (this.#goal !== null) {
        const left = this.#goal - this.time;
        const step = Math.sign(left) * this.speed * passed;
        const there = Math.abs(step) >= Math.abs(left);
        const time = there ? this.#goal : this.time + step;
        if (there) this.#goal = null;
        this.#to(time);
        if (there) this.changed();
      } else if (this.playing && this.still()) {
        this.#shown += passed;
        if (this.#shown >= SLIDE) {
          this.#shown = 0;
          const next = this.timeline.stopAt(this.time) + 1;
          this.#to(this.timeline.settled[next] ?? this.timeline.duration);
        }
        if (this.time >= this.timeline.duration) return this.#set(false);
      } else if (this.playing) {
        this.#to(this.time + passed);
        if (this.time >= this.timeline.duration) return this.#set(false);
      }
      if (this.playing || this.#goal !== null) this.#frame = requestAnimationFrame(tick);
    };
    this.#frame = requestAnimationFrame(tick);
  }
}
