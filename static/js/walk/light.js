// How light falls into the rooms of a generated house: daylight through windows, lamps under the ceiling, less in corners.
// It is worked out once for every corner of the geometry, so that drawing a frame costs next to nothing.

const DAY = [0.98, 1, 1.04];
const LAMP = [1.06, 0.98, 0.86];
// The sun's rays, as they fall.
export const SUN = [0.42, 0.55, -0.72];

export class Rooms {
  constructor(house, { storeyHeight, roomHeight }) {
    this.rooms = house.rooms.map((room) => {
      const { x0, y0, x1, y1 } = room.rect;
      const floor = room.storey * storeyHeight;
      const lamps = [];
      const [w, d] = [x1 - x0, y1 - y0];
      const [nx, ny] = [Math.max(1, Math.round(w / 4.2)), Math.max(1, Math.round(d / 4.2))];
      if (room.kind !== "stairs") {
        for (let i = 0; i < nx; i++) for (let j = 0; j < ny; j++) lamps.push([x0 + ((i + 0.5) * w) / nx, y0 + ((j + 0.5) * d) / ny, floor + roomHeight - 0.25]);
      }
      // A stairwell is open to the storeys below and above, and lit from its walls.
      const well = room.kind === "stairs";
      const open = (storey) => well && house.stairs.some((stairs) => stairs.storey === storey);
      if (well) for (const t of [0.25, 0.75]) lamps.push([(x0 + x1) / 2, y0 + t * d, floor + storeyHeight * 0.8]);
      const bottom = open(room.storey - 1) ? -Infinity : floor, top = open(room.storey) ? Infinity : floor + roomHeight;
      return { x0, y0, x1, y1, floor: bottom, ceiling: top, lamps, power: Math.min(1.6, 0.5 + (w * d) / (lamps.length || 1) / 12), holes: [] };
    });
    for (const opening of house.openings) {
      if (opening.kind === "front-door") continue;
      const wall = house.walls[opening.wall];
      const alongX = wall.from[1] === wall.to[1];
      const z = wall.storey * storeyHeight + (opening.bottom + opening.top) / 2;
      const outside = wall.rooms.includes(null);
      const area = opening.width * (opening.top - opening.bottom) * (outside ? 1 : 0.22);
      wall.rooms.forEach((index, side) => {
        if (index === null) return;
        // Into the room: the first room of a wall is on its south or west side.
        const into = side === 0 ? -1 : 1;
        this.rooms[index].holes.push([opening.at[0], opening.at[1], z, alongX ? 0 : into, alongX ? into : 0, area]);
      });
    }
  }

  // The light of one room, as a Brush wants it.
  of(index) {
    const room = this.rooms[index];
    return (x, y, z, nx, ny, nz, out) => {
      // What comes from everywhere: from above most, and back from the floor onto the ceiling.
      let day = 0.46 + (nz > 0 ? 0.1 : -0.04) * nz + 0.04 * nx + 0.06 * ny;
      for (const [hx, hy, hz, ix, iy, area] of room.holes) {
        const [dx, dy, dz] = [x - hx, y - hy, z - hz];
        const d2 = dx * dx + dy * dy + dz * dz;
        const d = Math.sqrt(d2) + 0.05;
        const ahead = (dx * ix + dy * iy) / d;
        const facing = -(dx * nx + dy * ny + dz * nz) / d;
        day += (area * Math.max(0, 0.15 + 0.85 * ahead) * Math.max(0, 0.3 + 0.7 * facing) * 0.62) / (d2 + 1.4);
      }
      let warm = 0;
      for (const [lx, ly, lz] of room.lamps) {
        const [dx, dy, dz] = [lx - x, ly - y, lz - z];
        const d2 = dx * dx + dy * dy + dz * dz;
        const facing = (dx * nx + dy * ny + dz * nz) / (Math.sqrt(d2) + 0.05);
        warm += (room.power * Math.max(0, 0.35 + 0.65 * facing)) / (d2 + 1.6);
      }
      // Less light reaches what is close to walls, floor and ceiling.
      let open = 1;
      const shut = (distance, axis) => { if (axis < 0.7) open *= 1 - 0.3 * Math.exp(-Math.max(distance, 0) / 0.24); };
      const [ax, ay, az] = [Math.abs(nx), Math.abs(ny), Math.abs(nz)];
      shut(x - room.x0, ax);
      shut(room.x1 - x, ax);
      shut(y - room.y0, ay);
      shut(room.y1 - y, ay);
      shut(z - room.floor, az);
      shut(room.ceiling - z, az);
      for (let k = 0; k < 3; k++) out[k] = 1.28 * (1 - Math.exp(-open * 1.28 * (day * DAY[k] + warm * LAMP[k])));
    };
  }

  // Where ceiling lamps hang.
  lamps(index) {
    return this.rooms[index].lamps;
  }
}

// Daylight on what is outdoors.
export function outdoors(x, y, z, nx, ny, nz, out) {
  const sun = Math.max(0, -(nx * SUN[0] + ny * SUN[1] + nz * SUN[2]));
  for (let k = 0; k < 3; k++) out[k] = 0.5 * [0.92, 0.98, 1.1][k] + 0.62 * sun * [1.05, 1, 0.9][k];
}
