// SPDX-License-Identifier: Apache-2.0
// What a GPU does not tell: registers used before their load has arrived, matrix results used too early, LDS bytes that two
// waves touch without a barrier. Called before each step when checks are on.
#include "matrix.c"

enum { VM_MAX = 63, LGKM_MAX = 15 };  // counters stop issuing when full (ISA "S_WAITCNT")
enum { MATRIX_WINDOW = 20 };           // no matrix rule reaches further than 19 wait states

static Watched *watched(Wave *w, const Machine *m, const Range *range, int n) {
    uint32_t row = range->first + (uint32_t)n;
    return &w->watched[range->role == READ_S || range->role == WRITE_S ? m->vgprs + row : row];
}

static void fault_register(Machine *m, Wave *w, int kind, uint32_t row, int scalar, uint32_t other, uint64_t needed, uint64_t have) {
    if (m->fault.kind != NO_FAULT) return;
    fault(m, w, kind, scalar ? -1 : (int)first_lane(exec_of(w)));
    m->fault.registers = row;
    m->fault.reason = (uint32_t)scalar;
    m->fault.other_step = other;
    m->fault.size = needed;
    m->fault.extra = have;
}

static uint32_t later(uint32_t x, uint32_t y) { return x > y ? x : y; }

// s_waitcnt: vector memory and LDS answer in order, so all but the youngest n are done; scalar loads answer in any order, and so
// does everything while a FLAT access is out, which may go either way (ISA "FLAT"; LLVM SIInsertWaitcnts: pending flat).
static void wait(Wave *w, const Step *i) {
    if (w->vm_issued > i->vm_count && (i->vm_count == 0 || w->flat_vm <= w->vm_done)) w->vm_done = later(w->vm_done, w->vm_issued - i->vm_count);
    if (w->lds_issued > i->lgkm_count && (i->lgkm_count == 0 || w->flat_lds <= w->lds_done))
        w->lds_done = later(w->lds_done, w->lds_issued - i->lgkm_count);
    if (i->lgkm_count == 0) w->scalar_done = w->scalar_issued;
}

static int outstanding(const Wave *w, const Watched *r) { return r->vm_load > w->vm_done || r->lds_load > w->lds_done || r->scalar_load > w->scalar_done; }

// A load may overwrite the target of an older one of the same, in-order counter.
static int same_counter(const Wave *w, const Step *i, const Watched *r) {
    if (i->family != MEMORY || i->space == FLAT || i->space == CONSTANTS) return 0;
    return i->space == LDS ? r->vm_load <= w->vm_done && r->scalar_load <= w->scalar_done : r->lds_load <= w->lds_done && r->scalar_load <= w->scalar_done;
}

static void check_waits(Machine *m, Wave *w, const Step *i) {
    for (int n = 0; n < i->ranges; n++) {
        const Range *range = &i->range[n];
        int writes = range->role == WRITE_V || range->role == WRITE_S || range->role == MATRIX_D;
        for (int k = 0; k < range->count; k++) {
            const Watched *r = watched(w, m, range, k);
            if (!outstanding(w, r) || (writes && same_counter(w, i, r))) continue;
            fault_register(m, w, MISSING_WAIT, range->first + (uint32_t)k, range->role == READ_S || range->role == WRITE_S, r->load_step, 0, 0);
            return;
        }
    }
}

// Wait states between a matrix instruction and the next use of its registers, and before one. Source: LLVM GCNHazardRecognizer
// (gfx940: checkMAIHazards90A, checkMAIVALUHazards) and CDNA3 ISA 4.5 "Manually Inserted Wait States"; P = passes:
//   D read by VALU, memory or as A or B   P + 3        D overwritten by VALU or memory        P + 3
//   D read as C, not the identical range  P + 1        the identical range                    0, 2 if P = 2
//   C overwritten by VALU or memory       P - 1        VALU writes A, B or C, then MFMA       2     VALU writes EXEC, then MFMA 4
static uint64_t needed_states(const Machine *m, const Range *range, const Watched *r) {
    const Step *producer = &m->steps[r->matrix_step];
    if (range->role != MATRIX_C) return producer->passes + 3u;
    const Range *d = &producer->range[0];  // translate.py puts D first
    if (d->first == range->first && d->count == range->count) return producer->passes == 2 ? 2 : 0;
    return producer->passes + 1u;
}

static void check_hazards(Machine *m, Wave *w, const Step *i) {
    uint64_t now = w->clock;
    for (int n = 0; n < i->ranges; n++) {
        const Range *range = &i->range[n];
        if (range->role == READ_S || range->role == WRITE_S) continue;
        if (range->role == MATRIX_D) continue;  // the hardware orders matrix writes among themselves
        for (int k = 0; k < range->count; k++) {
            const Watched *r = watched(w, m, range, k);
            uint64_t need = 0, since = 0;
            uint32_t other = 0;
            if (r->matrix_write && now - r->matrix_write - 1 < MATRIX_WINDOW) {
                need = needed_states(m, range, r), since = now - r->matrix_write - 1, other = r->matrix_step;
            }
            if (since >= need && range->role == WRITE_V && r->matrix_c_read && now - r->matrix_c_read - 1 < m->steps[r->c_step].passes - 1u)
                need = m->steps[r->c_step].passes - 1u, since = now - r->matrix_c_read - 1, other = r->c_step;
            if (since >= need && i->family == MATRIX && r->valu_write && now - r->valu_write - 1 < 2) need = 2, since = now - r->valu_write - 1, other = r->load_step;
            if (since < need) {
                fault_register(m, w, MFMA_HAZARD, range->first + (uint32_t)k, 0, other, need, since);
                m->fault.lane = -1;
                return;
            }
        }
    }
    if (i->family == MATRIX && w->last_exec_write && now - w->last_exec_write - 1 < 4) {
        fault_register(m, w, MFMA_HAZARD, NO_ROW, 0, 0, 4, now - w->last_exec_write - 1);
        m->fault.lane = -1;
    }
}

static int is_valu(const Step *i) { return i->family == VECTOR_ALU || i->family == PACKED_ALU || i->family == COMPARE || i->family == CARRY || i->family == LANE_MOVE; }

static void record_matrix(Machine *m, Wave *w, const Step *i) {
    for (int n = 0; n < i->ranges; n++)
        for (int k = 0; k < i->range[n].count; k++) {
            Watched *r = watched(w, m, &i->range[n], k);
            if (i->range[n].role == MATRIX_D) r->matrix_write = w->clock, r->matrix_step = w->step;
            if (i->range[n].role == MATRIX_C) r->matrix_c_read = w->clock, r->c_step = w->step;
        }
    w->last_matrix = w->clock;
}

static void record_writes(Machine *m, Wave *w, const Step *i) {
    int memory_step = i->family == MEMORY || i->family == LDS_MOVE;
    if (memory_step) {
        int lds = i->space == LDS || i->family == LDS_MOVE;
        if (i->space == CONSTANTS) w->scalar_issued++;
        else if (lds) w->lds_issued++;
        else w->vm_issued++;
        if (i->space == FLAT) w->flat_vm = w->vm_issued, w->flat_lds = ++w->lds_issued;
        if (w->vm_issued > VM_MAX) w->vm_done = later(w->vm_done, w->vm_issued - VM_MAX);
        if (w->lds_issued > LGKM_MAX) w->lds_done = later(w->lds_done, w->lds_issued - LGKM_MAX);
        if (lds && i->family == MEMORY && i->access != LOAD) w->lds_write_at = w->lds_issued;
    }
    if (!memory_step && !is_valu(i)) return;
    for (int n = 0; n < i->ranges; n++) {
        const Range *range = &i->range[n];
        if (range->role != WRITE_V && range->role != WRITE_S) continue;
        for (int k = 0; k < range->count; k++) {
            Watched *r = watched(w, m, range, k);
            if (memory_step) {
                r->load_step = w->step;
                if (i->space == CONSTANTS) r->scalar_load = w->scalar_issued;
                else if (i->space == LDS || i->family == LDS_MOVE) r->lds_load = w->lds_issued;
                else r->vm_load = w->vm_issued;
                if (i->space == FLAT) r->lds_load = w->lds_issued;
            } else if (range->role == WRITE_V) {
                r->valu_write = w->clock;
                r->load_step = w->step;
            } else if (range->first + k >= EXEC) {
                w->last_exec_write = w->clock;
            }
        }
    }
}

// Before a step executes. The clock counts wait states; it starts above 0, so that 0 means never.
static void watch(Machine *m, Wave *w, const Step *i) {
    w->clock += 1;
    if (w->vm_issued > w->vm_done || w->lds_issued > w->lds_done || w->scalar_issued > w->scalar_done) check_waits(m, w, i);
    if (i->family == MATRIX || (w->last_matrix && w->clock - w->last_matrix <= MATRIX_WINDOW)) check_hazards(m, w, i);
    if (m->fault.kind != NO_FAULT) return;
    if (i->family == MATRIX) record_matrix(m, w, i);
    else record_writes(m, w, i);
    w->clock += i->wait_states - 1;
}

// -- LDS ---------------------------------------------------------------------------------------------------------------
static void fault_race(Machine *m, Wave *w, int lane, uint32_t at, const Touch *touch, int kind) {
    if (m->fault.kind != NO_FAULT) return;
    int last = touch->wave != w->index;
    fault(m, w, kind, lane);
    m->fault.address = at;
    m->fault.other_step = last ? touch->step : touch->other_step;
    m->fault.other_wave = last ? touch->wave : touch->other_wave;
    m->fault.reason = 2;
}

static uint32_t others(const Machine *m, const Wave *w, const Touch *touch) {
    return touch->epoch == m->epoch ? touch->waves & ~(1u << w->index) : 0;
}

static void record_touch(const Machine *m, const Wave *w, Touch *touch) {
    if (touch->epoch != m->epoch) *touch = (Touch){.epoch = m->epoch, .wave = (uint8_t)w->index, .other_wave = (uint8_t)w->index};
    if (touch->wave != w->index) touch->other_wave = touch->wave, touch->other_step = touch->step;
    touch->wave = (uint8_t)w->index, touch->step = w->step, touch->sequence = w->lds_issued, touch->waves |= (uint16_t)(1u << w->index);
}

// The byte was written before the last barrier by a wave that did not wait for it (lgkmcnt) before that barrier.
static int not_flushed(const Machine *m, const Wave *w, const Touch *writer) {
    return writer->epoch && writer->epoch < m->epoch && writer->wave != w->index && writer->sequence > m->wave[writer->wave].flushed;
}

// Two waves, one byte, at least one write, no barrier between (m->epoch counts barriers). Atomics do not race with each other, nor
// do plain stores of the same value, which compilers let several waves make, and such a wave may read the byte: no order shows.
// `before`: what the bytes were before a plain store, which has been made; null for loads and atomics.
static void touch_lds(Machine *m, Wave *w, int lane, uint32_t at, uint32_t size, int store, const uint8_t *before) {
    for (uint32_t byte = at; byte < at + size; byte++) {
        Touch *writer = &m->lds_writer[byte], *reader = &m->lds_reader[byte], *atomic = &m->lds_atomic[byte];
        int wrote_too = writer->epoch == m->epoch && writer->waves >> w->index & 1;
        int same = before ? before[byte - at] == m->lds[byte] : !store && wrote_too;
        if (others(m, w, writer) && !same) fault_race(m, w, lane, byte, writer, LDS_RACE);
        if ((!store || before) && others(m, w, atomic)) fault_race(m, w, lane, byte, atomic, LDS_RACE);
        if (store && others(m, w, reader)) fault_race(m, w, lane, byte, reader, LDS_RACE);
        if (not_flushed(m, w, writer)) fault_race(m, w, lane, byte, writer, MISSING_WAIT);
        if (not_flushed(m, w, atomic)) fault_race(m, w, lane, byte, atomic, MISSING_WAIT);
        record_touch(m, w, !store ? reader : before ? writer : atomic);
    }
}
