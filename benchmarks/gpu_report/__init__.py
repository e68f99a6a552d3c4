"""What one GPU shows of the trainer, as a report whose every row can fail. A map of the room:

    PYTHONPATH=trainer:benchmarks python -m gpu_report --device cuda --out gpu-report
    PYTHONPATH=trainer:benchmarks python -m gpu_report --device cpu --part step attention
    make gpu-report

__main__        the command: parts one after another, each in a process of its own, then the report
known_rows      every row by its id: what it measures, and the bound it must keep
bound           bounds, and the words for them
results         rows of one part as they are found, line by line, so that a killed part keeps what it had
child           one part in its process
alone           the process of a part, its time limit and its end
written         the report as Markdown and JSON
machine         versions, driver and processor
setting         what a part is told: device, sizes, folders
made            recipes, policies and rollouts with random numbers
clock           seconds, peak memory and rates of a device
part_*          the parts: device, step, attention, decode, memory, throughput, generation, mismatch, resume, real

Nothing of the platform is needed but `trainer/scalerl`. On a CPU the same code runs with small sizes.
"""
