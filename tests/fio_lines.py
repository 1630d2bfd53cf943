#!/usr/bin/env python3
"""Compares `diskproof as fio` with the real fio on random command lines: does it move the same
bytes, print the same keys of JSON (in some lines the same lines of another output), leave the same
files and end with the same exit code?

    tests/fio_lines.py --seed 1 --count 60 target/debug/diskproof /var/tmp

Each line has 1 to 3 jobs, with options out of all that `fio --cmdhelp` lists (SKIPPED below says
which are left out, and why). The jobs of some lines stand in a job file, with comments, an included
file, environment variables and keywords. A line runs in a new directory for fio and in another for
diskproof, both inside the given directory, which is the only place where anything is written; as
root some lines trim a loop device over a file in it. Some lines run twice, so that they meet their
own files, or find files with data. A line is printed for each:

    7 equal        fio --output-format=json --name=job0 --rw=read --size=1m
    8 refused      fio … | zonemode=zbd is not supported
    9 different    fio … | io_bytes: job0 read: fio 1048576, diskproof 524288

What no two runs of fio have in common is not compared, and the line says so: "equal (ends by
time)". The command `--seed 1 --only 9` repeats line 9, and `--shrink` removes the options of a
different line that are not needed for the difference. Ends with 1 if a line is different."""

import argparse
import contextlib
import copy
import json
import math
import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

KIB, MIB = 1 << 10, 1 << 20
# The objects of a job in JSON that have amounts.
KINDS = ("read", "write", "trim", "mixed")
TIMEOUT_S = 60
# The bytes of a file that exists before a line runs.
OLD_BYTES = 2 * MIB

# The options that no line has.
SKIPPED = {
    "profile": "chooses other options",
    "fill_device": "fills the disk of the directory",
    "ioscheduler": "changes a setting of the machine",
    "cgroup": "changes a setting of the machine",
    "cgroup_nodelete": "changes a setting of the machine",
    "cgroup_weight": "changes a setting of the machine",
    "uid": "the directories belong to who runs the lines",
    "gid": "the directories belong to who runs the lines",
    "allow_mounted_write": "writes to a disk in use",
    "read_iolog": "needs a recorded load",
    "merge_blktrace_file": "needs a recorded load",
    "verify_state_load": "needs a state that an earlier run has left",
    "gtod_cpu": "ends fio 3.33 with a segmentation fault",
    "trim_percentage": "needs a device and verify",
    "trim_backlog": "needs a device and verify",
}

ENGINES = ["psync", "libaio", "io_uring", "sync", "pvsync2", "posixaio", "mmap", "vsync", "pvsync"]
ENGINE_WEIGHTS = [5, 8, 6, 3, 2, 1, 2, 1, 1]
QUEUES = ["libaio", "io_uring", "posixaio"]
DIRECTIONS = ["read", "write", "randread", "randwrite", "rw", "randrw", "readwrite"]
DIRECTION_WEIGHTS = [4, 4, 5, 5, 2, 4, 1]
SIZES = ["64k", "256k", "1m", "1500k", "3m", "4m", "8m", "32m"]
BLOCKS = ["4k", "8k", "16k", "64k", "4k,8k", "512", "128k", "1m", "12k", "4k,16k,64k", ",8k",
          "4k:8k", "8k-4k"]
CHECKSUMS = ["crc32c", "md5", "sha256", "xxhash", "crc64", "crc32c-intel", "sha3-256", "sha1",
             "crc7", "crc16", "crc32", "sha512", "sha3-224", "sha3-384", "sha3-512"]

# The forms of output with their weights. fio prints several of them one after the other.
FORMS = [("json", 32), ("json+", 2), ("normal", 4), ("terse", 2), ("json,normal", 2),
         ("normal,json+", 1), ("terse,json", 1)]
# General options, which concern no job, and what they may be followed by.
GENERAL = [("eta", ["never", "always", "auto"]), ("eta-newline", ["1"]), ("eta-interval", ["1"]),
           ("status-interval", ["1", "500ms"]), ("warnings-fatal", [None]), ("max-jobs", ["16"]),
           ("alloc-size", ["32768"]), ("aux-path", ["."]), ("terse-version", ["2", "3", "4", "5"])]
# The values of options that a job file may spell with a keyword of fio.
KEYWORDS = {"4k": "$pagesize", "2": "$ncpus"}
# The environment of both programs, by the values that a job file may take from it.
ENVIRONMENT = {"1m": "LINE_MIB", "8k": "LINE_BLOCK", "randread": "LINE_RW", "libaio": "LINE_AIO"}

# A group is its weight, the jobs that may have it, and its options: name, chance, values. The first
# one is always drawn. `None` is a switch without a value.
GROUPS = [
    (14, "", [("bs", 1, BLOCKS)]),
    (4, "", [("bsrange", 1, ["4k-16k", "1k-8k", "4k-32k,8k-16k"]), ("bs_unaligned", 0.1, [None])]),
    (4, "", [("bssplit", 1, ["4k/60:16k/40", "4k/10:8k/40:16k,8k", "4k/:8k/", "8k/50:12k/50"])]),
    (12, "", [("iodepth", 1, [1, 2, 3, 4, 7, 8, 16, 32, 64])]),
    (5, "queue", [("iodepth", 1, [4, 8, 16]), ("iodepth_batch", 0.4, [1, 2, 4]),
                  ("iodepth_batch_complete_min", 0.3, [1, 2, 4]),
                  ("iodepth_batch_complete_max", 0.3, [4, 8]), ("iodepth_low", 0.3, [1, 2])]),
    (1, "queue", [("io_submit_mode", 1, ["offload", "inline"])]),
    (1, "queue", [("serialize_overlap", 1, [0, 1])]),
    (10, "", [("direct", 1, [1, 1, 1, 0])]),
    (1, "", [("buffered", 1, [0, 1])]),
    (1, "", [("atomic", 1, [0])]),
    (8, "", [("numjobs", 1, [1, 2, 3, 4])]),
    (2, "", [("bsrange", 1, ["4k-8k,", "512-4k,4k-4k", "8k-64k,4k-16k,4k-4k"])]),
    (1, "", [("bssplit", 1, ["4k,8k/50:16k/50", "4k/50:8k/50,4k,8k", "512/1:4k/99", "8k/:4k/20"])]),
    (2, "", [("numjobs", 1, [2, 3]), ("offset_increment", 1, ["256k", "10%", "1m"])]),
    (8, "", [("group_reporting", 1, [None])]),
    (7, "", [("runtime", 1, [1, 2, "1s", "1500ms"]), ("time_based", 0.6, [None])]),
    (2, "", [("ramp_time", 1, [1, "500ms"]), ("runtime", 0.7, [1, 2]),
             ("time_based", 0.5, [None])]),
    (1, "later", [("ramp_time", 1, [1]), ("stonewall", 1, [None]), ("runtime", 1, [1]),
                  ("time_based", 1, [None])]),
    (1, "later", [("stonewall", 1, [None]), ("new_group", 0.5, [None]),
                  ("group_reporting", 0.7, [None])]),
    (4, "", [("io_size", 1, ["512k", "2m", "50%", "6m", "100%", "12k"])]),
    (4, "", [("loops", 1, [2, 3])]),
    (3, "", [("number_ios", 1, [10, 20, 100])]),
    (4, "", [("offset", 1, ["64k", "10%", "50%", "1m", "99%", "512"])]),
    (1, "", [("offset", 1, ["25%", "64k"]), ("offset_increment", 1, ["64k", "5%"]),
             ("numjobs", 1, [2, 4]), ("size", 0.6, ["256k", "20%"])]),
    (1, "", [("size", 1, ["50%"]), ("filesize", 1, ["2m", "1500k"])]),
    (1, "", [("offset_align", 1, ["4k", "64k"]), ("offset", 1, ["10%", "33%"])]),
    (4, "mixed", [("rwmixread", 1, [0, 10, 30, 50, 70, 90, 100])]),
    (2, "mixed", [("rwmixwrite", 1, [25, 60])]),
    (5, "random", [("norandommap", 1, [None])]),
    (4, "random", [("random_distribution", 1,
                    ["zipf:1.2", "zipf", "pareto:0.3", "normal:20", "random",
                     "zoned:60/10:30/20:8/30:2/40", "zoned_abs:60/1m:40/2m"])]),
    (2, "random", [("percentage_random", 1, ["100,0", "0,100", 100, 50, 20, 0])]),
    (2, "random", [("random_generator", 1, ["lfsr", "tausworthe64", "tausworthe"])]),
    (2, "random", [("ba", 1, ["4k", "8k", "64k"])]),
    (1, "", [("rw_sequencer", 1, ["sequential", "identical"])]),
    (4, "", [("randrepeat", 1, [0, 1])]),
    (2, "", [("allrandrepeat", 1, [0, 1])]),
    (2, "", [("randseed", 1, [1234, 7])]),
    (5, "", [("filename", 1, ["one", "one", "a:b", "a:b:c"])]),
    (2, "", [("directory", 1, ["sub", "."]), ("filename_format", 0.3, ["$jobname.$filenum", "f"])]),
    (1, "", [("filename_format", 1, ["$jobname.$jobnum.$filenum", "x.$filenum"])]),
    (5, "", [("nrfiles", 1, [2, 3, 4, 8]), ("openfiles", 0.15, [1, 2]),
             ("file_service_type", 0.4, ["random", "sequential", "roundrobin", "roundrobin:4",
                                         "zipf", "random:2"])]),
    (2, "", [("filesize", 1, ["2m", "4m", "1m-2m", "512k", "64k-64k", "1m-1536k"])]),
    (1, "", [("nrfiles", 1, [2, 4]), ("filesize", 1, ["256k", "1m"]),
             ("file_service_type", 0.6, ["random", "sequential", "roundrobin:2", "normal",
                                         "pareto:0.5", "zipf:1.1"])]),
    (1, "", [("file_append", 1, [0, 1])]),
    (1, "", [("unique_filename", 1, [0, 1])]),
    (1, "", [("opendir", 1, ["sub"])]),
    (1, "", [("bs_is_seq_rand", 1, [0, 1])]),
    (1, "", [("lockfile", 1, ["none", "exclusive", "readwrite"])]),
    (5, "writes", [("fsync", 1, [1, 8, 32])]),
    (3, "writes", [("fdatasync", 1, [1, 16])]),
    (2, "writes", [("sync", 1, [1, "dsync", "sync", 0])]),
    (4, "writes", [("end_fsync", 1, [0, 1])]),
    (2, "writes", [("fsync_on_close", 1, [0, 1])]),
    (1, "writes", [("sync_file_range", 1, ["write:8", "wait_before,write:4"])]),
    (1, "writes", [("write_barrier", 1, [0, 8])]),
    (1, "writes", [("write_hint", 1, ["none", "short", "long"])]),
    (4, "", [("rate_iops", 1, [500, 2000, "400,800", 50, 5]),
             ("rate_process", 0.2, ["poisson", "linear"]),
             ("rate_ignore_thinktime", 0.1, [0, 1])]),
    (4, "", [("rate", 1, ["2m", "4m,2m", "512k", "1m,", ",1m"]),
             ("rate_process", 0.2, ["poisson", "linear"])]),
    (1, "", [("rate_iops", 1, [100, "300,100"]), ("thinktime", 0.5, ["1ms"]),
             ("rate_cycle", 0.3, [500]), ("ramp_time", 0.2, ["500ms"])]),
    (1, "", [("rate_min", 1, ["1k", "100g"]), ("rate_cycle", 0.5, [200, 1000])]),
    (1, "", [("rate_iops_min", 1, [1, 100000000]), ("rate_cycle", 0.5, [200])]),
    (3, "", [("thinktime", 1, [200, "1ms", 5000]), ("thinktime_blocks", 0.5, [1, 8]),
             ("thinktime_spin", 0.15, [50]), ("thinktime_iotime", 0.1, ["10ms"]),
             ("thinktime_blocks_type", 0.2, ["complete", "issue"])]),
    (2, "", [("startdelay", 1, [1, "500ms"])]),
    (2, "", [("max_latency", 1, ["20s", "10us", "1"])]),
    (2, "", [("latency_target", 1, ["10ms", "50us"]), ("latency_window", 0.7, ["200ms"]),
             ("latency_percentile", 0.5, [90, 99]), ("latency_run", 0.2, [0, 1])]),
    (4, "verify", [("verify", 1, CHECKSUMS), ("do_verify", 0.2, [0, 1]),
                   ("verify_fatal", 0.2, [0, 1]), ("verify_backlog", 0.15, [8]),
                   ("verify_backlog_batch", 0.05, [4]), ("verify_interval", 0.1, [512, "1k"]),
                   ("verify_offset", 0.05, [64]), ("verify_dump", 0.1, [0, 1]),
                   ("verify_async", 0.1, [1, 2]), ("verify_state_save", 0.2, [0]),
                   ("experimental_verify", 0.05, [0]), ("verify_only", 0.05, [None])]),
    (2, "verify", [("verify", 1, ["pattern"]), ("verify_pattern", 1, ["0x55aa", '"abc"', "%o"])]),
    (1, "verify", [("verify", 1, ["meta", "null"])]),
    (2, "writes", [("zero_buffers", 1, [None])]),
    (4, "writes", [("refill_buffers", 1, [None])]),
    (2, "writes", [("scramble_buffers", 1, [0, 1])]),
    (2, "writes", [("buffer_pattern", 1, ["0xdeadbeef", '"abc"'])]),
    (3, "writes", [("buffer_compress_percentage", 1, [0, 50, 100]),
                   ("buffer_compress_chunk", 0.3, [512, "4k"])]),
    (2, "writes", [("dedupe_percentage", 1, [30, 100]),
                   ("dedupe_mode", 0.3, ["repeat", "working_set"]),
                   ("dedupe_working_set_percentage", 0.2, [10]), ("dedupe_global", 0.2, [1])]),
    (4, "", [("invalidate", 1, [0, 1])]),
    (1, "", [("pre_read", 1, [0, 1])]),
    (2, "", [("overwrite", 1, [0, 1])]),
    (2, "", [("fallocate", 1, ["none", "posix", "native", "keep", "truncate"])]),
    (1, "", [("fadvise_hint", 1, [0, 1, "random", "sequential"])]),
    (1, "", [("create_serialize", 1, [0, 1])]),
    (1, "", [("create_fsync", 1, [0, 1])]),
    (1, "", [("create_on_open", 1, [0, 1])]),
    (2, "", [("create_only", 1, [0, 1])]),
    (1, "", [("allow_file_create", 1, [0, 1])]),
    (2, "", [("unlink", 1, [0, 1])]),
    (1, "", [("unlink_each_loop", 1, [0, 1])]),
    (2, "", [("zonemode", 1, ["strided", "strided", "none"]), ("zonesize", 0.9, ["64k", "256k"]),
             ("zoneskip", 0.7, ["64k", 0]), ("zonerange", 0.2, ["128k", "512k"])]),
    (1, "", [("steadystate", 1, ["iops:50%", "bw:50%", "iops_slope:5%"]),
             ("steadystate_duration", 1, [1]), ("steadystate_ramp_time", 0.3, [1])]),
    (2, "several", [("flow", 1, [1, 3]), ("flow_id", 0.8, [1]), ("flow_sleep", 0.4, [100])]),
    (5, "later", [("stonewall", 1, [None])]),
    (2, "later", [("wait_for", 1, ["job0"])]),
    (1, "later", [("new_group", 1, [None])]),
    (2, "", [("exitall", 1, [None]), ("exit_what", 0.3, ["group", "all", "stonewall"])]),
    (1, "", [("exitall_on_error", 1, [None])]),
    (1, "", [("continue_on_error", 1, ["none", "all", "io", "verify"]),
             ("error_dump", 0.3, [0, 1])]),
    (1, "", [("ignore_error", 1, ["EAGAIN", "ENOSPC:EIO", ":ENOSPC"])]),
    (3, "", [("thread", 1, [None])]),
    (2, "", [("cpus_allowed", 1, ["0", "0-1"]),
             ("cpus_allowed_policy", 0.3, ["shared", "split"])]),
    (1, "", [("cpumask", 1, [1, 3])]),
    (1, "", [("numa_cpu_nodes", 1, ["0"])]),
    (1, "", [("numa_mem_policy", 1, ["default", "local"])]),
    (1, "", [("nice", 1, [0, 5])]),
    (1, "", [("prio", 1, [4]), ("prioclass", 0.5, [2])]),
    (1, "", [("mem", 1, ["malloc", "shm", "mmap", "mmapshared"]), ("hugepage-size", 0.1, ["2m"])]),
    (1, "", [("lockmem", 1, ["64k"])]),
    (1, "", [("clocksource", 1, ["gettimeofday", "clock_gettime", "cpu"])]),
    (2, "", [("gtod_reduce", 1, [0, 1])]),
    (1, "", [("disable_lat", 1, [0, 1])]),
    (1, "", [("disable_clat", 1, [0, 1])]),
    (1, "", [("disable_slat", 1, [0, 1])]),
    (1, "", [("disable_bw_measurement", 1, [0, 1])]),
    (2, "", [("lat_percentiles", 1, [0, 1])]),
    (2, "", [("clat_percentiles", 1, [0, 1])]),
    (1, "", [("slat_percentiles", 1, [0, 1])]),
    (3, "", [("percentile_list", 1, ["50:90:99.9", "5:50:99", "99", "100", "99.9:50:1:0.5",
                                     "10:20:30:40:50:60:70:80:90:95:99:99.5:99.9:99.95:99.99"])]),
    (1, "", [("block_error_percentiles", 1, [0, 1])]),
    (1, "", [("significant_figures", 1, [3, 6])]),
    (2, "", [("disk_util", 1, [0, 1])]),
    (2, "", [("unified_rw_reporting", 1, ["none", "mixed", "both", 1, 0])]),
    (1, "", [("stats", 1, [0, 1])]),
    (1, "", [("kb_base", 1, [1000, 1024]), ("unit_base", 0.5, [8, 1])]),
    (1, "", [("unit_base", 1, [0, 1, 8])]),
    (1, "", [("write_bw_log", 1, ["all"]), ("write_iops_log", 1, ["all"]),
             ("write_lat_log", 1, ["all"]), ("log_avg_msec", 1, [250]),
             ("per_job_logs", 0.4, [0, 1])]),
    (2, "", [("write_bw_log", 1, ["log", None]), ("log_avg_msec", 0.7, [100, 1000]),
             ("per_job_logs", 0.2, [0, 1]), ("bwavgtime", 0.2, [200])]),
    (2, "", [("write_lat_log", 1, ["log"]), ("log_avg_msec", 0.7, [100, 1000]),
             ("log_max_value", 0.2, [0, 1]), ("log_offset", 0.1, [0, 1]),
             ("log_prio", 0.1, [0, 1]), ("log_entries", 0.1, [2048])]),
    (2, "", [("write_iops_log", 1, ["log"]), ("log_avg_msec", 0.7, [100]),
             ("iopsavgtime", 0.2, [200]), ("log_unix_epoch", 0.1, [0, 1]),
             ("log_alternate_epoch", 0.1, [0, 1]), ("log_alternate_epoch_clock_id", 0.1, [0]),
             ("log_compression", 0.1, ["64k"]), ("log_compression_cpus", 0.05, ["0"]),
             ("log_store_compressed", 0.1, [0])]),
    (1, "", [("write_hist_log", 1, ["log"]), ("log_hist_msec", 0.8, [500]),
             ("log_hist_coarseness", 0.4, [0, 3])]),
    (1, "", [("write_iolog", 1, ["iolog"])]),
    (2, "", [("description", 1, ["a job", "x=1"])]),
    (1, "", [("exec_prerun", 1, ["true", "echo before"])]),
    (1, "", [("exec_postrun", 1, ["true"])]),
    # Options that do nothing without others, in the load of this list.
    (1, "", [("max_open_zones", 1, [0])]),
    (1, "", [("job_max_open_zones", 1, [0])]),
    (1, "", [("ignore_zone_limits", 1, [0])]),
    (1, "", [("read_beyond_wp", 1, [0])]),
    (1, "", [("zone_reset_threshold", 1, ["0.5"]), ("zone_reset_frequency", 0.5, ["0.1"])]),
    (1, "", [("zonecapacity", 1, ["64k"])]),
    (1, "", [("read_iolog_chunked", 1, [0]), ("replay_no_stall", 0.5, [0, 1])]),
    (1, "", [("replay_scale", 1, [1]), ("replay_align", 0.5, ["4k"])]),
    (1, "", [("replay_time_scale", 1, [100]), ("replay_skip", 0.5, ["trim"])]),
    (1, "", [("replay_redirect", 1, ["other"])]),
    (1, "", [("merge_blktrace_scalars", 1, ["100"]), ("merge_blktrace_iters", 0.5, ["1"])]),
    (1, "", [("trim_verify_zero", 1, [0, 1]), ("trim_backlog_batch", 0.5, [4])]),
]


def fits(when, job, place, jobs):
    """True if a job may have a group that is for such jobs."""
    direction = job["rw"]
    if when == "random":
        return direction.startswith("rand")
    if when == "mixed":
        return direction in ("rw", "randrw", "readwrite")
    if when == "writes":
        return "w" in direction.replace("rand", "")
    if when == "verify":
        return direction in ("write", "randwrite")
    if when == "queue":
        return job.get("ioengine") in QUEUES
    if when == "several":
        return jobs > 1
    if when == "later":
        return place > 0
    return True


def random_job(dice, place, jobs):
    """The options of a job by name; `None` for a switch."""
    job = {"rw": dice.choices(DIRECTIONS, DIRECTION_WEIGHTS)[0]}
    if dice.random() < 0.8:
        job["ioengine"] = dice.choices(ENGINES, ENGINE_WEIGHTS)[0]
    job["size"] = dice.choice(SIZES)
    wanted = dice.randint(3, 10)
    while len(job) < wanted:
        weight, when, options = dice.choices(GROUPS, [group[0] for group in GROUPS])[0]
        if options[0][0] in job or not fits(when, job, place, jobs):
            continue
        for number, (name, chance, values) in enumerate(options):
            if number == 0 or dice.random() < chance:
                job[name] = dice.choice(values)
    if dice.random() < 0.06:
        is_random = job["rw"].startswith("rand")
        job["rw"] += dice.choice([":4", ":8"]) if is_random else ":8k"
    bound_time(job)
    return job


def bound_time(job):
    """Gives a runtime to a job that may take longer than a line may."""
    is_slow = {"rate", "rate_iops", "thinktime", "steadystate", "latency_target", "sync", "fsync",
               "fdatasync", "sync_file_range"}
    is_slow = bool(is_slow & set(job)) or job.get("rate_process") == "poisson"
    many = job["size"] in ("8m", "32m") and job.get("loops", 1) > 1
    small = str(job.get("bs", "4k")).startswith(("512", ",")) or "1k-" in str(job.get("bsrange"))
    if "runtime" not in job and (is_slow or many or (small and job["size"] in ("8m", "32m"))):
        if job["size"] not in ("64k", "256k") or "rate" in "".join(job):
            job["runtime"] = 3
    if job.get("runtime") is not None and "time_based" in job:
        job.pop("number_ios", None)


def trim_job(dice, device):
    """The options of a job that trims a device."""
    directions = ["trim", "randtrim", "trimwrite", "randtrimwrite", "randwrite", "read"]
    job = {"filename": device, "rw": dice.choices(directions, [3, 3, 3, 2, 1, 1])[0]}
    job["ioengine"] = dice.choice(["psync", "libaio", "io_uring", "sync"])
    job["bs"] = dice.choice(["4k", "64k", "1m", "4k,8k,64k", "16k,16k,4k"])
    job["size"] = dice.choice(["1m", "4m", "100%", "25%"])
    more = {"offset": ["1m", "25%"], "direct": [1], "iodepth": [4], "numjobs": [2],
            "group_reporting": [None], "loops": [2], "number_ios": [10], "thread": [None],
            "io_size": ["2m"], "norandommap": [None], "rate_iops": [200], "fsync": [4],
            "zonemode": ["strided"], "percentage_random": [50], "stonewall": [None],
            "offset_increment": ["1m"], "ramp_time": ["500ms"]}
    for name in dice.sample(sorted(more), dice.randint(0, 3)):
        job[name] = dice.choice(more[name])
    if job.get("zonemode") == "strided":
        job |= {"zonesize": "64k", "zoneskip": "64k"}
    if {"rate_iops", "ramp_time"} & set(job):
        job["runtime"] = 2
    return job


class Line:
    """A command line, and what it finds in its directory."""

    def __init__(self, seed, number, device):
        dice = random.Random(f"{seed}.{number}")
        jobs = dice.choices([1, 2, 3], [7, 2, 1])[0]
        self.form = dice.choices([form for form, _ in FORMS], [weight for _, weight in FORMS])[0]
        self.globals, self.jobs = {}, []
        self.runs = 2 if dice.random() < 0.15 else 1
        self.has_old = dice.random() < 0.12
        self.device = device if device and dice.random() < 0.03 else None
        for place in range(jobs):
            if self.device:
                self.jobs.append(trim_job(dice, self.device))
            else:
                self.jobs.append(random_job(dice, place, jobs))
        if self.has_old and not self.device:
            # diskproof does not make a file longer that others made (docs/drop-in.md).
            old = {"filename": "old", "size": dice.choice(["64k", "256k", "1m", "1500k", "2m"])}
            self.jobs[0] |= old
            for name in ("nrfiles", "filesize", "offset", "offset_increment", "directory"):
                self.jobs[0].pop(name, None)
        if jobs > 1 and dice.random() < 0.5:
            self.share(dice)
        self.general = {}
        for name, values in dice.sample(GENERAL, 1 if dice.random() < 0.2 else 0):
            self.general[name] = dice.choice(values)
        # The file of the jobs, and what it includes; empty where they are options.
        self.files = {}
        # A job file releases no file of others (docs/job-files.md).
        if dice.random() < 0.2 and not self.has_old:
            self.write_job_file(dice)

    def share(self, dice):
        """Moves some options of the first job in front of all jobs."""
        for name in sorted(self.jobs[0]):
            if name not in ("stonewall", "wait_for") and dice.random() < 0.5:
                self.globals[name] = self.jobs[0].pop(name)

    def write_job_file(self, dice):
        """Moves the jobs to a job file. Half of the files include the options of all jobs, and some
        lines run one section of several, which must not wait for another."""
        if len(self.jobs) > 1 and dice.random() < 0.3:
            place = dice.randrange(len(self.jobs))
            if "wait_for" not in self.jobs[place]:
                self.general["section"] = f"job{place}"
        shared = [self.setting(dice, *option) for option in self.globals.items()]
        text = ["; a job file", "[global]"]
        if shared and dice.random() < 0.5:
            self.files["shared.fio"] = "\n".join(["# for all jobs", *shared, ""])
            shared = ["include shared.fio"]
        text += shared
        for place, job in enumerate(self.jobs):
            text += ["", f"[job{place}]"]
            text += [self.setting(dice, *option) for option in job.items()]
        self.files["jobs.fio"] = "\n".join([*text, ""])

    def setting(self, dice, name, value):
        """An option as a line of a job file, in one of the spellings that fio takes."""
        if value is None:
            return name
        spelt = str(value)
        if name in ("bs", "ba", "numjobs") and spelt in KEYWORDS and dice.random() < 0.3:
            spelt = KEYWORDS[spelt]
        elif spelt in ENVIRONMENT and dice.random() < 0.4:
            spelt = "${" + ENVIRONMENT[spelt] + "}"
        # fio takes no space behind the sign: it reads `size= 1m` as one byte.
        equals = dice.choices(["=", " ="], [6, 1])[0]
        end = dice.choices(["", " ", "\t; a comment"], [8, 1, 1])[0]
        return f"{name}{equals}{spelt}{end}"

    def measured_jobs(self):
        """The jobs that run, each with the options of all jobs."""
        every = [self.globals | job for job in self.jobs]
        section = self.general.get("section")
        return [every[int(section[3:])]] if section else every

    def words(self):
        """The arguments of fio."""
        words = [f"--output-format={self.form}"]
        words += [option_word(*option) for option in self.general.items()]
        if self.files:
            return [*words, "jobs.fio"]
        words += [option_word(*option) for option in self.globals.items()]
        for place, job in enumerate(self.jobs):
            words.append(f"--name=job{place}")
            words += [option_word(*option) for option in job.items()]
        return words

    def text(self):
        """The command, as a shell takes it, and what must be there before."""
        text = "fio " + shlex.join(self.words())
        for name, content in self.files.items():
            escaped = content.replace("%", "%%").replace("\n", "\\n").replace("\t", "\\t")
            text = f"printf {shlex.quote(escaped)} >{name}; {text}"
        if self.has_old:
            text = f"head -c {OLD_BYTES} /dev/urandom >old; {text}"
        return text if self.runs == 1 else f"{text} (twice)"

    def options_of(self, name):
        """All options of a job, with those of all jobs, or the options of every job where several
        have one entry."""
        if "group_reporting" in self.globals or any("group_reporting" in job for job in self.jobs):
            merged = {}
            for job in self.measured_jobs():
                merged |= job
            return merged
        place = int(name[3:]) if re.fullmatch(r"job\d", name) else 0
        return self.globals | self.jobs[min(place, len(self.jobs) - 1)]


def option_word(name, value):
    """An option as a word of the command line."""
    return f"--{name}" if value is None else f"--{name}={value}"


class Ran:
    """What a program did: its exit code, what it printed, and the parsed JSON or None."""

    def __init__(self, command, place):
        process = subprocess.Popen(
            command, cwd=place, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            stdin=subprocess.DEVNULL, start_new_session=True, errors="replace",
            env=os.environ | {name: value for value, name in ENVIRONMENT.items()},
        )
        self.is_late = False
        try:
            self.out, self.errors = process.communicate(timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.is_late = True
            os.killpg(process.pid, signal.SIGKILL)
            # Each job of fio has a session of its own, and holds the pipes.
            end_processes_in(place)
            self.out, self.errors = process.communicate()
        end_processes_in(place)
        self.code = process.returncode
        # With --status-interval, the last of several documents is that of the whole run.
        start = max(self.out.rfind("\n{\n") + 1, 0)
        start, end = self.out.find("{\n", start), self.out.rfind("\n}") + 1
        self.report = None
        with contextlib.suppress(ValueError):
            self.report = json.loads(self.out[start : end + 1]) if start >= 0 else None

    def has_jobs(self):
        """True if the output is about jobs, whatever has become of them."""
        return self.report is not None or "groupid=" in self.out or bool(terse_fields(self.out))

    def crash(self):
        """The signal that ended fio or one of its jobs by its own fault; None without one. A rate
        of nothing with `rate_process=poisson` divides by zero, and a job that maps a file while its
        copy makes it anew finds no pages."""
        found = re.search(r"got signal=(4|6|7|8|11)\b", self.errors + self.out)
        if found:
            return found[0]
        return f"signal {-self.code}" if self.code in (-4, -6, -7, -8, -11) else None

    def why(self):
        """The last lines about an error."""
        before_report = self.out[: self.out.find("{\n")] if "{\n" in self.out else self.out
        lines = (self.errors + "\n" + before_report).strip().splitlines()
        lines = [line.strip() for line in lines if line.strip()]
        return " / ".join(lines[-3:])[:400]


def end_processes_in(place):
    """Ends the processes whose working directory is this one, as the jobs of a fio that crashed."""
    for link in Path("/proc").glob("[0-9]*/cwd"):
        with contextlib.suppress(OSError):
            if os.readlink(link) == str(place):
                os.kill(int(link.parent.name), signal.SIGKILL)


class Difference(Exception):
    """The first difference between two runs: where, and what it is."""


def keys(value, path=""):
    """The paths of all keys, without those that are figures."""
    found = set()
    if isinstance(value, dict):
        for key, inner in value.items():
            here = f"{path}/{key}"
            if not path.endswith("/bins"):
                found.add(here)
                found |= keys(inner, here)
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            # Which disks there are is not a matter of the program.
            number = "" if path.endswith("disk_util") else f"[{place}]"
            found |= keys(inner, f"{path}{number}")
    return found


DEPENDENT = re.compile("/percentile|/bins$|/latency_(depth|target|percentile|window)$")


def has_ramp(line):
    """True if a job has a ramp_time, in which requests have no latencies. Whether a job is done by
    then depends on the load of the machine."""
    return any("ramp_time" in job for job in line.measured_jobs())


def ends_with_others(line):
    """True if one of several jobs ends the others, at any time."""
    every = line.measured_jobs()
    copies = sum(int(one.get("numjobs", 1)) for one in every)
    return copies > 1 and any("exitall" in one or "exitall_on_error" in one for one in every)


def compare_keys(real, own, depends_on_time):
    """Both reports have the same keys, but for those that depend on time."""
    theirs, mine = [keys(side.report | {"jobs": entries(side.report)}) for side in (real, own)]
    # fio sometimes misses the disk of a short job.
    if not real.report.get("disk_util"):
        mine = {key for key in mine if not key.startswith("/disk_util/")}
    if depends_on_time:
        # A job that has no time has no latencies, and one that does not begin has no depth.
        theirs = {key for key in theirs if not DEPENDENT.search(key)}
        mine = {key for key in mine if not DEPENDENT.search(key)}
    # diskproof measures no time of submission (docs/drop-in.md).
    theirs = {key for key in theirs if "/slat_ns/percentile" not in key}
    missing, more = sorted(theirs - mine), sorted(mine - theirs)
    # Each percentile is a key. One kind of latency is enough to name.
    if missing or more:
        missing = [key for key in missing if parent(key) not in missing]
        more = [key for key in more if parent(key) not in more]
        raise Difference(f"keys: missing {missing[:4]}, more {more[:4]}")


def parent(key):
    """The key of the object that holds this one."""
    return key.rsplit("/", 1)[0]


def shape(text):
    """The lines of a normal output without figures: headings as they are, then the labels."""
    found = []
    for line in text.splitlines():
        if re.match(r"\S+: \(g=\d+\): ", line) or line == "..." or line.startswith("Starting "):
            found.append(line)
            continue
        # Not measured by diskproof, only where a latency or a rate falls into it, a part of a
        # list whose columns follow from the latencies, or a warning. Nor are the states of blocks,
        # which diskproof does not print (docs/drop-in.md), nor the progress of --eta.
        not_compared = (
            r" +(slat|lat|bw) \(|   iops  |    slat perc|     \||note|  block life|   \||Jobs: "
        )
        if re.match(not_compared, line):
            continue
        label = re.match(r" *(\|| *[A-Za-z][A-Za-z /_]*)(?=[\s:=(\[|])", line)
        if label and not line.startswith(("fio-", "  loop", "  vda")) and "ios=" not in line:
            found.append(re.sub(r"\d+", "N", label.group(0)).rstrip())
    return found


def compare_lines(line, real, own):
    """Both normal outputs have the same lines; fio has no latencies of a warm-up."""
    # How often --status-interval repeats them depends on time. fio's vsync sometimes counts
    # requests to the other direction (`is_short_by_vsync`).
    every = line.measured_jobs()
    joins = any(job.get("ioengine") == "vsync" and "iodepth" in job for job in every)
    if has_ramp(line) or ends_with_others(line) or joins or "status-interval" in line.general:
        return
    theirs, mine = shape(real.out), shape(own.out)
    if theirs != mine:
        pairs = [pair for pair in zip(theirs, mine) if pair[0] != pair[1]]
        raise Difference(f"lines: {pairs[:3]}, fio {len(theirs)}, diskproof {len(mine)}")


def terse_fields(text):
    """The number of fields of each line of a terse output, without that of fio's empty entry
    (`entries`)."""
    lines = [line for line in text.splitlines() if line.count(";") > 40]
    return [line.count(";") + 1 for line in lines if line.split(";")[2:4] != ["", "-1"]]


def compare_fields(real, own):
    """Both terse outputs have the same number of fields."""
    if terse_fields(real.out) != terse_fields(own.out):
        raise Difference(f"fields: fio {terse_fields(real.out)}, diskproof {terse_fields(own.out)}")


def entries(report):
    """The jobs of a report. Where only some jobs of a group have group_reporting, fio adds an empty
    entry (docs/drop-in.md)."""
    return [job for job in report["jobs"] if job.get("groupid") != 2**32 - 1]


def compare_jobs(line, real, own):
    """Both reports are about the same jobs; returns the pairs, and the notes of what is not
    compared."""
    theirs, mine = entries(real.report), entries(own.report)
    if len(theirs) != len(mine):
        raise Difference(f"jobs: fio {len(theirs)}, diskproof {len(mine)}")
    notes = []
    for job, other in zip(theirs, mine):
        options = line.options_of(job["jobname"])
        for key in ("jobname", "groupid", "error", "desc", "job options"):
            if key == "error" and LATENCY_LIMITS & set(options):
                # A request may be as fast as the limit, or not.
                continue
            if job.get(key) != other.get(key):
                text = f"fio {job.get(key)}, diskproof {other.get(key)}"
                raise Difference(f"{key}: {job['jobname']}: {text}")
        cause = free_amounts(line, options, job, other)
        if cause:
            notes.append(cause)
        if cause in (OTHER_JOB, DRAWN_END):
            continue
        if cause:
            compare_time_ended(job, other, options)
        else:
            compare_amounts(job, other, options)
    if real.report.get("global options") != own.report.get("global options"):
        raise Difference("global options")
    return notes


# The options with which a job fails where a request takes too long.
LATENCY_LIMITS = {"max_latency", "latency_target"}
# The cause of an end at any time, also before a job begins.
OTHER_JOB = "ends with another job"
# The cause of an end of each lap of fio at any place of the file, also before its first block.
DRAWN_END = "fio's draw meets the end of the file"


def free_amounts(line, options, job, other):
    """Why two runs of fio do not move the same bytes; None where they do."""
    every = line.measured_jobs()
    if ends_with_others(line):
        return OTHER_JOB
    if len({one.get("ramp_time") for one in every}) > 1:
        # docs/drop-in.md
        return "jobs share the longest warm-up"
    # A run behind a random offset that meets a part of a block at the end of the file ends it.
    has_draw = re.match(r"rand\w+:\d", options["rw"])
    law = str(options.get("random_distribution", "random"))
    if (has_draw or law != "random") and not is_whole(options):
        return DRAWN_END
    if "time_based" in options and "runtime" in options:
        return "ends by time"
    if "runtime" in options:
        runtime_ms = milliseconds(options["runtime"])
        if any("group_reporting" in one for one in every):
            # One entry stands for several jobs.
            times = [milliseconds(one["runtime"]) for one in every if "runtime" in one]
            runtime_ms = min(times)
        kinds = [side[kind] for side in (job, other) for kind in KINDS if kind in side]
        if any(kind["runtime"] >= runtime_ms * 0.9 for kind in kinds):
            return "ends by time"
    if "ramp_time" in options and amounts(job) != amounts(other):
        return "a part of the time does not count"
    for name in ("steadystate", "latency_target", "rate_min", "rate_iops_min", "max_latency"):
        if name in options:
            return f"ends by {name}"
    depth = int(options.get("iodepth", 1))
    if options.get("ioengine") == "vsync" and is_short_by_vsync(job, other, depth):
        return "fio's vsync loses bytes"
    has_map = options["rw"].startswith("rand") and "norandommap" not in options
    has_two_sizes = bool(set(str(options.get("bs"))) & set(",:-")) or "," in str(
        options.get("bssplit")
    )
    if has_map and has_two_sizes:
        return "fio's map counts blocks of another size"
    if "offset_increment" in options and "%" in str(options["offset_increment"]):
        if "bsrange" in options or "bssplit" in options:
            return "percentages of a file that grows"
    return None


def is_short_by_vsync(job, other, depth):
    """True if fio made as many requests, and counted fewer bytes: its vsync, which joins up to
    `depth` requests to one call, sometimes loses the bytes of a whole call, or counts them to the
    other direction."""
    theirs, mine = amounts(job), amounts(other)
    kinds = theirs.keys() | mine.keys()
    moved = [theirs.get(kind, (0, 0))[1] - mine.get(kind, (0, 0))[1] for kind in kinds]
    sums = [sum(amount[0] for amount in side.values()) for side in (theirs, mine)]
    is_of_one_call = all(abs(count) <= depth for count in moved)
    return sum(moved) == 0 and is_of_one_call and sums[0] < sums[1]


def is_whole(options):
    """True if a file has no part of a block at its end."""
    blocks = str(options.get("bs", options.get("bssplit")))
    return options["size"] != "1500k" and "12k" not in blocks


def milliseconds(value):
    """A time of an option in milliseconds."""
    text = str(value)
    if text.endswith("ms"):
        return float(text[:-2])
    return float(text.rstrip("s")) * 1000


def amounts(job):
    """The bytes and requests of each direction by name."""
    kinds = [kind for kind in KINDS if kind in job]
    return {kind: (job[kind]["io_bytes"], job[kind]["total_ios"]) for kind in kinds}


def compare_time_ended(job, other, options):
    """Where time ends both, each direction moves something or nothing; with a rate, about as
    much."""
    theirs, mine = amounts(job), amounts(other)
    for kind, (_, count) in theirs.items():
        if kind == "read" and "verify" in options and options.get("ioengine") in QUEUES:
            # fio reads each lap back before the next one (docs/drop-in.md).
            continue
        if (count > 20) and mine.get(kind, (0, 0))[1] == 0:
            raise Difference(f"io_bytes: {job['jobname']} {kind}: fio {count} requests, none")
        # fio forgets what it counted before the window that confirms a depth.
        forgets = "latency_target" in options
        if mine.get(kind, (0, 0))[1] > 20 and count == 0 and not forgets:
            text = f"fio none, diskproof {mine[kind][1]} requests"
            raise Difference(f"io_bytes: {job['jobname']} {kind}: {text}")
    # A direction of a mix without a rate is as fast as the disk.
    has_free_direction = "" in str(options.get("rate")).split(",")
    is_paced = {"rate", "rate_iops"} & set(options) and not has_free_direction
    if is_paced and "ramp_time" not in options:
        one, two = [sum(amount[1] for amount in side.values()) for side in (theirs, mine)]
        if abs(one - two) > 5 + 0.3 * max(one, two):
            raise Difference(f"rate: {job['jobname']}: fio {theirs}, diskproof {mine}")


def compare_amounts(job, other, options):
    """Both moved the same bytes by the same number of requests in each direction."""
    theirs, mine = amounts(job), amounts(other)
    text = f"io_bytes: {job['jobname']}: fio {theirs}, diskproof {mine}"
    has_backlog_of_runs = "verify_backlog" in options and ":" in options["rw"]
    reads_repeats = "percentage_random" in options or has_backlog_of_runs
    if reads_repeats and {"verify", "verify_pattern"} & set(options):
        # fio reads a block back as often as it was written, or never (docs/drop-in.md).
        theirs, mine = [{"write": side.get("write")} for side in (theirs, mine)]
    if theirs == mine:
        return
    is_mixed = options["rw"].split(":")[0] in ("rw", "randrw", "readwrite")
    sizes = [str(options[name]) for name in ("bs", "bsrange", "bssplit") if name in options]
    has_sizes = any(set(size) & set(",:-/") for size in sizes)
    if not is_mixed and not has_sizes:
        raise Difference(text)
    is_mapped = options["rw"].startswith("rand") and "norandommap" not in options
    if has_sizes and is_mapped and "number_ios" not in options:
        # Blocks that reach a visited one are shortened, by another order of offsets.
        sums = [sum(amount[0] for amount in side.values()) for side in (theirs, mine)]
        if is_mixed or sums[0] == sums[1] or abs(sums[0] - sums[1]) <= 0.05 * max(sums):
            return
        raise Difference(text)
    which = 1 if "number_ios" in options else 0
    sums = [sum(amount[which] for amount in side.values()) for side in (theirs, mine)]
    # With several sizes both end with the block that reaches the size.
    allowed = 0
    if has_sizes:
        allowed = 2 if which else 64 * KIB * int(options.get("numjobs", 1))
    if abs(sums[0] - sums[1]) > allowed:
        raise Difference(text)
    total = sum(amount[1] for amount in theirs.values())
    for kind, (_, count) in theirs.items():
        # The direction of each request is drawn at random by both.
        if abs(count - mine.get(kind, (0, 0))[1]) > 6 * math.sqrt(total) + 2:
            raise Difference(text)


def files(place):
    """Names and sizes of what is left. A log has no size: its lines are figures."""
    found = {}
    for path in sorted(place.rglob("*")):
        name = str(path.relative_to(place))
        # diskproof writes no state files (docs/drop-in.md).
        if name.endswith("verify.state"):
            continue
        is_plain = path.is_file() and not name.endswith((".log", "iolog"))
        found[name] = path.stat().st_size if is_plain else "there"
    return found


def compare_files(line, mine, theirs):
    """Both left the same files."""
    own, real = files(mine), files(theirs)
    if any(job.get("unlink") == 1 for job in line.measured_jobs()):
        # diskproof removes no file that was there before (docs/drop-in.md).
        if line.has_old and own.get("old") is None:
            raise Difference("files: diskproof has removed old")
        real.pop("old", None)
        own.pop("old", None)
    if any({"opendir", "create_only"} & set(job) for job in line.measured_jobs()):
        # A job that moves nothing runs no commands (docs/drop-in.md).
        for name in [name for name in real if re.fullmatch(r".*\.(pre|post)run\.txt", name)]:
            real.pop(name)
            own.pop(name, None)
    if any(job.get("create_on_open") == 1 for job in line.measured_jobs()):
        # fio's files end where the last block was written (docs/drop-in.md).
        for name, size in real.items():
            mine_size = own.get(name)
            if isinstance(size, int) and isinstance(mine_size, int) and mine_size > size:
                real[name] = mine_size
    if own != real:
        only_real = dict(sorted(set(real.items()) - set(own.items())))
        only_own = dict(sorted(set(own.items()) - set(real.items())))
        raise Difference(f"files: fio {only_real}, diskproof {only_own}")


def columns(path):
    """The numbers of columns that the lines of a log have."""
    return {line.count(",") + 1 for line in path.read_text(errors="replace").splitlines()}


def compare_logs(mine, theirs):
    """The lines of logs have the same columns in both, where both have lines."""
    for path in sorted(theirs.rglob("*.log")):
        own = mine / path.relative_to(theirs)
        real_columns, own_columns = columns(path), columns(own) if own.exists() else set()
        if real_columns and own_columns and real_columns != own_columns:
            text = f"fio {sorted(real_columns)}, diskproof {sorted(own_columns)}"
            raise Difference(f"columns: {path.name}: {text}")


def compared(line, program, base):
    """The verdict on a line, equal, refused or different, with a reason or notes."""
    with tempfile.TemporaryDirectory(dir=base, prefix="fio_lines-") as place:
        mine, theirs = Path(place, "mine"), Path(place, "theirs")
        old = random.Random(0).randbytes(OLD_BYTES)
        for side in (mine, theirs):
            Path(side, "sub").mkdir(parents=True)
            if line.has_old:
                Path(side, "old").write_bytes(old)
            for name, content in line.files.items():
                Path(side, name).write_text(content)
        notes = []
        for _ in range(line.runs):
            verdict, notes = compared_once(line, program, mine, theirs)
            if verdict != "equal":
                break
        return verdict, notes


def compared_once(line, program, mine, theirs):
    """The verdict on one run of a line."""
    ours = [program, "as", "-q", "--no-history"]
    if line.device:
        ours += ["--destroy", Path(line.device).name, "--wipe-unknown"]
    if line.has_old:
        ours.append("--overwrite")
    clear_device(line.device)
    real = Ran(["fio", *line.words()], theirs)
    clear_device(line.device)
    own = Ran([*ours, "fio", *line.words()], mine)
    if real.is_late:
        return "equal", "fio does not end"
    crash = real.crash()
    if crash and "panicked" not in own.errors and not own.is_late:
        return "equal", f"fio crashes: {crash}"
    if own.is_late:
        return "different", "diskproof does not end"
    if "panicked" in own.errors:
        return "different", f"panic: {own.errors[:400]}"
    if has_failed_pre_read(line, real):
        return "equal", "fio's pre-read fails with direct I/O"
    if "func=fcntl write hint" in real.errors + real.out:
        return "equal", "the kernel refuses write_hint with direct I/O"
    if has_read_overwritten(line, real):
        return "equal", "fio takes a block that it overwrote for a corrupt one"
    if has_trimmed_dirty(line, own):
        return "equal", "the kernel refuses io_uring to trim what others write through the cache"
    if not own.has_jobs():
        if real.report is not None and not has_moved(real.report) and not only_creates(line):
            return "equal", "fio moves nothing, and diskproof says so"
        if real.has_jobs() and (real.code == 0 or has_moved(real.report)):
            return "refused", own.why()
        return "equal", f"both fail: fio: {real.why()[:150]}; diskproof: {own.why()[:150]}"
    try:
        if not real.has_jobs():
            # With steadystate_duration alone, fio prints the word for an undefined number.
            if real.code == 0 and own.code == 0 and '"jobs" : [' in real.out:
                return "equal", "fio's JSON is no JSON"
            raise Difference(f"error: fio {real.code}: {real.why()}")
        notes = []
        if real.report is not None and own.report is not None:
            notes = compare_jobs(line, real, own)
        # A request may be as fast as the limit, or not.
        if real.code != own.code and not ended_by_latency(real, own):
            raise Difference(f"exit code: fio {real.code}, diskproof {own.code}: {own.why()}")
        # The requests before the late one have random directions.
        if "normal" in line.form and not ended_by_latency(real, own):
            compare_lines(line, real, own)
        if "terse" in line.form and "status-interval" not in line.general:
            compare_fields(real, own)
        if "json" in line.form and real.report is None:
            notes.append("fio's JSON is no JSON")
        elif "json" in line.form:
            if own.report is None:
                raise Difference("keys: diskproof's JSON is no JSON")
            compare_keys(real, own, notes or has_ramp(line))
        compare_files(line, mine, theirs)
        compare_logs(mine, theirs)
    except Difference as difference:
        return "different", str(difference)
    return "equal", ", ".join(sorted(set(notes)))


def ended_by_latency(*outcomes):
    """True if a job of either ended because a request took too long (ETIME is 62, ETIMEDOUT 110)."""
    for outcome in outcomes:
        if re.search(r"\berr= *(62|110)\b|^3;fio-[^;]*;[^;]*;\d+;(62|110);", outcome.out, re.M):
            return True
        for job in (outcome.report or {}).get("jobs", []):
            if job.get("error") in (62, 110):
                return True
    return False


def has_failed_pre_read(line, real):
    """True if a job of fio ends with EIO because it reads its file before with direct I/O into a
    buffer that is not aligned, which most disks refuse."""
    reads_before = any(
        (line.globals | job).get("pre_read") == 1 and (line.globals | job).get("direct") == 1
        for job in line.jobs
    )
    return reads_before and "func=pre_read" in real.errors + real.out


def has_read_overwritten(line, real):
    """True if a job of fio with `rw=randwrite:N` and verify ends with EILSEQ: the blocks behind a
    random one are not in its map, so it writes some of them twice, and expects the first write."""
    has_runs = any(
        "randwrite:" in str((line.globals | job).get("rw")) and "verify" in line.globals | job
        for job in line.jobs
    )
    return has_runs and "bad header numberio" in real.errors + real.out


def only_creates(line):
    """True if a job is to make files only."""
    return any(job.get("create_only") == 1 for job in line.measured_jobs())


def has_trimmed_dirty(line, own):
    """True if a job of diskproof ends with EBUSY because it trims by io_uring blocks that another
    one writes through the page cache at that moment (docs/drop-in.md)."""
    every = line.measured_jobs()
    trims = any("trim" in one["rw"] and one.get("ioengine") == "io_uring" for one in every)
    writes = any("write" in one["rw"] and one.get("direct") != 1 for one in every)
    return trims and writes and "EBUSY" in own.errors + own.out


def has_moved(report):
    """True if a job of a report has moved something, or if there is no report to tell."""
    if report is None:
        return True
    return any(count for job in report["jobs"] for _, count in amounts(job).values())


def shrunk(line, program, base, kind):
    """A line without the jobs and options that are not needed for a difference of this kind. A job
    file stays as it is."""
    if line.files:
        return line
    for place in range(len(line.jobs) - 1, -1, -1):
        shorter = copy.deepcopy(line)
        del shorter.jobs[place]
        line = kept_if_different(line, shorter, program, base, kind)
    if len(line.jobs) == 1:
        line.jobs[0] = line.globals | line.jobs[0]
        line.globals = {}
    for place in range(-1, len(line.jobs)):
        names = line.globals if place < 0 else line.jobs[place]
        for name in [name for name in names if name not in ("rw", "size")]:
            shorter = copy.deepcopy(line)
            del (shorter.globals if place < 0 else shorter.jobs[place])[name]
            line = kept_if_different(line, shorter, program, base, kind)
    if line.runs > 1:
        shorter = copy.deepcopy(line)
        shorter.runs = 1
        line = kept_if_different(line, shorter, program, base, kind)
    return line


def kept_if_different(line, shorter, program, base, kind):
    """The shorter line if it has a difference of this kind, too; else the line."""
    if not shorter.jobs:
        return line
    verdict, why = compared(shorter, program, base)
    return shorter if verdict == "different" and why.startswith(kind) else line


def clear_device(device):
    """Writes zeros to a loop device of `loop_device`."""
    if device:
        with open(device, "r+b") as disk:
            disk.write(bytes(16 * MIB))


@contextlib.contextmanager
def loop_device(base):
    """A loop device of 16 MiB over a file in the directory, as root; else None."""
    if os.geteuid() != 0 or not shutil.which("losetup"):
        yield None
        return
    with tempfile.TemporaryDirectory(dir=base, prefix="fio_lines-") as place:
        image = Path(place, "image")
        image.write_bytes(bytes(16 * MIB))
        made = subprocess.run(["losetup", "-f", "--show", image], capture_output=True, text=True)
        device = made.stdout.strip() or None
        try:
            yield device
        finally:
            if device:
                subprocess.run(["losetup", "-d", device], check=False)


def report_unknown():
    """Names the options of the real fio that no line can have."""
    listed = subprocess.run(["fio", "--cmdhelp"], capture_output=True, text=True, check=True).stdout
    names = {text.split(":")[0].strip() for text in listed.splitlines() if ":" in text}
    known = {option[0] for _, _, options in GROUPS for option in options}
    known |= set(SKIPPED) | {"name", "rw", "size", "ioengine"}
    missing = sorted(names - known)
    if missing:
        print(f"options of this fio that no line has: {', '.join(missing)}", file=sys.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", default="1")
    parser.add_argument("--count", type=int, default=60, help="number of lines")
    parser.add_argument("--only", type=int, help="run only this line of the seed")
    parser.add_argument("--shrink", action="store_true", help="also show a shorter different line")
    parser.add_argument("program", metavar="DISKPROOF")
    parser.add_argument("base", metavar="DIR")
    given = parser.parse_args()
    program, base = str(Path(given.program).resolve()), str(Path(given.base).resolve())
    report_unknown()
    # The loop device and the directories go with the program.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    counts = {"equal": 0, "refused": 0, "different": 0}
    numbers = range(given.count) if given.only is None else [given.only]
    with loop_device(base) as device:
        for number in numbers:
            line = Line(given.seed, number, device)
            verdict, why = compared(line, program, base)
            counts[verdict] += 1
            print(f"{number} {verdict:<9} {line.text()}" + (f" | {why}" if why else ""), flush=True)
            if verdict == "different" and given.shrink:
                line = shrunk(line, program, base, why.split(":")[0])
                why = compared(line, program, base)[1]
                print(f"    shorter: {line.text()} | {why}", flush=True)
    print(f"seed {given.seed}: " + ", ".join(f"{n} {kind}" for kind, n in counts.items()))
    sys.exit(counts["different"] > 0)


main()
