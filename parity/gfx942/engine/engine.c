// SPDX-License-Identifier: Apache-2.0
// The run loop: workgroup after workgroup, its waves in turns, one step at a time. Built by native.py with ziglang's clang as one
// unit: engine.h <- lanes.c <- vector.c <- scalar.c <- memory.c <- matrix.c <- watch.c <- engine.c. Plain C, no host fast-math.
#include "watch.c"

enum { TURN = 4096 };  // steps before the next wave gets its turn: a wave may wait in a loop for another one

static uint64_t random_below(Machine *m, uint64_t limit) {
    m->random = m->random * 6364136223846793005u + 1442695040888963407u;
    return (m->random >> 33) % limit;
}

static void arrive(Machine *m, Wave *w) {
    w->status = AT_BARRIER;
    w->flushed = w->lds_done >= w->lds_write_at ? w->lds_issued : w->lds_done;
    w->arrived_at = w->step;
    uint64_t gone = w->start_exec & ~exec_of(w);
    if (m->checks && gone) {
        fault(m, w, BARRIER_DIVERGENCE, (int)first_lane(gone));
        m->fault.reason = 1;
    }
}

static void step(Machine *m, Wave *w) {
    const Step *i = &m->steps[w->step];
    m->counts[w->step]++;
    w->steps++;
    if (m->checks) {
        watch(m, w, i);
        if (m->fault.kind != NO_FAULT) return;
    }
    switch (i->family) {
        case SCALAR_ALU: scalar_alu(m, w, i); break;
        case VECTOR_ALU: vector_alu(m, w, i); break;
        case PACKED_ALU: packed_alu(m, w, i); break;
        case COMPARE: compare(m, w, i); break;
        case CARRY: carry(m, w, i); break;
        case LANE_MOVE: lane_move(m, w, i); break;
        case MATRIX: matrix(m, w, i); break;
        case MEMORY: memory(m, w, i); break;
        case LDS_MOVE: lds_move(m, w, i); break;
        case WAIT: wait(w, i); break;
        case NOP: break;
        case BRANCH: branch(m, w, i); return;
        case BARRIER: arrive(m, w); break;
        case END: w->status = ENDED; return;
        default: fault(m, w, UNSUPPORTED, -1); return;
    }
    w->step = i->next;
}

static void run_wave(Machine *m, Wave *w, uint64_t turn) {
    while (turn-- && w->status == RUNNABLE && m->fault.kind == NO_FAULT) {
        uint32_t at = w->step;
        step(m, w);
        if (m->fault.kind != NO_FAULT) m->fault.step = at;
        else if (w->steps > m->step_limit) {
            fault(m, w, STEP_LIMIT, -1);
            m->fault.step = at;
        }
    }
}

// All waves that can run have arrived. A wave that has ended, or waits at another barrier, never took this one.
static void release(Machine *m) {
    const Wave *first = 0;
    for (uint32_t n = 0; n < m->wave_count; n++)
        if (m->wave[n].status == AT_BARRIER && !first) first = &m->wave[n];
    for (uint32_t n = 0; m->checks && n < m->wave_count; n++) {
        Wave *w = &m->wave[n];
        if (w->status == AT_BARRIER && w->arrived_at == first->arrived_at) continue;
        fault(m, first, BARRIER_DIVERGENCE, -1);
        m->fault.step = first->arrived_at;
        m->fault.other_wave = n;
        m->fault.reason = w->status == ENDED ? 2 : 3;
        m->fault.other_step = w->arrived_at;
        return;
    }
    m->epoch++;
    for (uint32_t n = 0; n < m->wave_count; n++)
        if (m->wave[n].status == AT_BARRIER) m->wave[n].status = RUNNABLE;
}

static void start_wave(Machine *m, uint32_t n, uint64_t group) {
    Wave *w = &m->wave[n];
    size_t registers = (size_t)m->vgprs * LANES, scratch = (size_t)m->scratch_bytes * LANES;
    memset(w, 0, sizeof *w);
    w->index = n, w->step = m->entry, w->clock = 1;
    w->v = m->vector_storage + n * registers;
    memset(w->v, 0, 4 * registers);
    uint8_t *bytes = m->byte_storage + n * (m->vgprs + 2 * scratch);
    w->dirty = bytes, w->scratch = bytes + m->vgprs, w->scratch_undefined = w->scratch + scratch;
    memset(w->scratch, 0, scratch);
    memcpy(w->s, m->initial_s, sizeof w->s);
    uint32_t ids[3] = {(uint32_t)(group % m->grid[0]), (uint32_t)(group / m->grid[0] % m->grid[1]), (uint32_t)(group / m->grid[0] / m->grid[1])};
    for (int axis = 0; axis < 3; axis++)
        if (m->group_id_row[axis] != NO_ROW) w->s[m->group_id_row[axis]] = ids[axis];
    w->start_exec = m->initial_exec[n];
    w->s[EXEC] = (uint32_t)w->start_exec, w->s[EXEC + 1] = (uint32_t)(w->start_exec >> 32);
    memcpy(w->v, m->initial_v0 + n * LANES, 4 * LANES);
    if (!m->checks) return;
    w->undefined = m->vector_storage + (m->wave_count + n) * registers;
    w->origin = m->origin_storage + (size_t)n * m->vgprs;
    w->watched = m->watched_storage + (size_t)n * (m->vgprs + SGPRS);
    memset(w->undefined, 0xff, 4 * registers);
    memset(w->undefined, 0, 4 * LANES);
    memset(w->dirty, 1, m->vgprs);
    w->dirty[0] = 0;
    memset(w->origin, 0, 4 * m->vgprs);
    memset(w->watched, 0, sizeof(Watched) * (m->vgprs + SGPRS));
    memset(w->scratch_undefined, 0xff, scratch);
    for (uint32_t row = m->initial_known; row < EXEC; row++) w->s_undefined[row] = ALL_BITS;
    w->scc_undefined = 1;
}

static void run_group(Machine *m, uint64_t group) {
    for (uint32_t n = 0; n < m->wave_count; n++) start_wave(m, n, group);
    memset(m->lds, 0, m->lds_bytes);
    if (m->checks) memset(m->lds_undefined, 0xff, m->lds_bytes);
    if (m->checks) memset(m->lds_writer, 0, sizeof(Touch) * m->lds_bytes), memset(m->lds_reader, 0, sizeof(Touch) * m->lds_bytes), memset(m->lds_atomic, 0, sizeof(Touch) * m->lds_bytes);
    m->epoch = 1;
    for (;;) {
        uint32_t runnable = 0, ended = 0, candidates[MAX_WAVES];
        for (uint32_t n = 0; n < m->wave_count; n++) {
            if (m->wave[n].status == RUNNABLE) candidates[runnable++] = n;
            ended += m->wave[n].status == ENDED;
        }
        if (ended == m->wave_count || m->fault.kind != NO_FAULT) return;
        if (runnable == 0) release(m);
        else if (m->schedule) run_wave(m, &m->wave[candidates[random_below(m, runnable)]], 1 + random_below(m, random_below(m, 2) ? 64 : 4));  // short turns too
        else
            for (uint32_t n = 0; n < runnable && m->fault.kind == NO_FAULT; n++) run_wave(m, &m->wave[candidates[n]], TURN);
    }
}

// Runs the workgroups order[0..count), stops at the first fault. Returns its kind.
uint32_t run_groups(Machine *m, const uint64_t *order, uint64_t count) {
    uint64_t mixed = m->schedule * 0x9e3779b97f4a7c15u + m->nudge * 0xd1342543de82ef95u + 1;  // neighbouring seeds far apart (splitmix64)
    mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9u;
    m->random = (mixed ^ mixed >> 27) * 0x94d049bb133111ebu;
    for (uint64_t n = 0; n < count && m->fault.kind == NO_FAULT; n++) {
        m->random ^= order[n] << 20;
        m->fault.group = (int64_t)order[n];
        run_group(m, order[n]);
        if (m->fault.kind != NO_FAULT) m->fault.group = (int64_t)order[n];
    }
    return m->fault.kind;
}

// -- what Python asks ----------------------------------------------------------------------------------------------------
typedef struct { const char *name, *types; uint32_t fidelity, sources; } Operation;
static const Operation operations[] = {
#define VALU(name, R, A, B, C, fidelity, ...) {#name, "V" #R #A #B #C, fidelity, 0},
#define SUMS(name, R, A, B, C, ...) {#name, "S" #R #A #B #C, EXACT, 0},
#define PACKED(name, A, sources, fidelity, ...) {#name, "P" #A, fidelity, sources},
#define ORDER(name, A, ...) {#name, "O" #A, EXACT, 2},
#include "vector.def"
#undef VALU
#undef SUMS
#undef PACKED
#undef ORDER
#define SALU(name, D, A, B, ...) {#name, "D " #D " " #A " " #B, EXACT, 0},
#include "scalar.def"
#undef SALU
};
const Operation *operation(uint32_t index) { return index < OPERATIONS ? &operations[index] : 0; }
void layout_sizes(uint64_t sizes[6]) {
    sizes[0] = sizeof(Step), sizes[1] = sizeof(Region), sizes[2] = sizeof(Fault), sizes[3] = sizeof(Machine), sizes[4] = sizeof(Touch), sizes[5] = sizeof(Watched);
}
